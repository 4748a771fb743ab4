# shellcheck shell=bash
# Readline splits words at = and :, so the word is taken from the line itself.
_pnradar() {
    local program=${1##*/} line=${COMP_LINE:0:COMP_POINT} word words='' prefix='' key
    local -a before
    word=${line##*[[:space:]]}
    read -ra before <<<"${line%"$word"}"
    case ${before[-1]} in
    -*) words=$(_pnradar_words "$program:${before[-1]}") ;;
    esac
    if [[ -z $words && $word == --*=* ]]; then
        prefix=${word%%=*}=
        word=${word#*=}
        words=$(_pnradar_words "$program:${prefix%=}")
        [[ -n $words ]] || words=none
    fi
    if [[ $words == keys && $word == *=* ]]; then
        key=${word%%=*}
        prefix+=$key=
        [[ $key =~ ^([a-z]+)\.[0-9]+\.(.*)$ ]] && key=${BASH_REMATCH[1]}.1.${BASH_REMATCH[2]}
        words=$(_pnradar_words "$key")
        word=${word#*=}
        [[ -n $words ]] || words=files
    elif [[ $words == keys ]]; then
        words=$(_pnradar_words keys)
        [[ $word =~ ^([a-z]+)\.([0-9]+)\. ]] && words=${words//${BASH_REMATCH[1]}.1./${BASH_REMATCH[0]}}
        compopt -o nospace 2>/dev/null
    fi
    COMPREPLY=()
    case $words in
    none) compopt +o default 2>/dev/null && return ;;
    files) return ;;
    '') words=$(_pnradar_words "$program:") ;;
    esac
    [[ $COMP_WORDBREAKS == *=* ]] && prefix=''
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$words" -- "$word")
}
