# SPDX-License-Identifier: MIT
# The completion for zsh, one function for all programs. Reads the words of keys, then the options.
function quote(text) {
    gsub(/'/, "'\\''", text)
    gsub(/\[/, "\\[", text)
    gsub(/\]/, "\\]", text)
    gsub(/:/, "\\:", text)
    return text
}
BEGIN { FS = "\t" }
FNR == NR {
    split($0, word, " ")
    keys = keys " " word[1] "="
    if (word[2]) cases = cases "        " word[1] ") words=(" substr($0, length(word[1]) + 2) ") ;;\n"
    next
}
{
    line[++n_lines] = $0
    if ($3 == "") programs = programs " " $1
}
END {
    print "#compdef" programs
    print "# Completion of pnradar for zsh, printed from the table of keys and the options of each program.\n"
    print "_pnradar_keys() {\n    local -a words\n    if compset -P 1 '*='; then"
    print "        case ${${${IPREFIX%=}##*=}/.<->./.1.} in\n" cases "        *) _files && return ;;\n        esac\n        compadd -a words"
    print "    else\n        words=(" keys " )"
    print "        [[ $PREFIX =~ '^([a-z]+)\\.([0-9]+)\\.' ]] && words=(${words/#$match[1].1./$match[1].$match[2].})"
    print "        compadd -S '' -a words\n    fi\n}\n"
    print "local -a arguments\ncase $service in"
    for (i = 1; i <= n_lines; i++) {
        split(line[i], f, "\t")
        if (f[3] == "") {
            if (i > 1) print "        )\n        ;;"
            print f[1] ")\n        arguments=("
            if (f[4] ~ /\|/) { gsub(/\|/, " ", f[4]); print "            '1:command:(" f[4] ")'" }
            else print "            '*:file:_files'"
            continue
        }
        action = f[4] ~ /KEY=VALUE/ ? "_pnradar_keys" : f[4] ~ /^(FILE|FOLDER|RECORDING)/ ? "_files" : f[4] ~ /\|/ ? "(" f[4] ")" : " "
        gsub(/\|/, " ", action)
        many = f[3] == "--config" || f[3] == "--set" ? "*" : ""
        value = f[4] ? ":" quote(f[4]) ":" action : ""
        help = "[" quote(f[5]) "]"
        if (f[2]) print "            '" many f[2] help value "'"
        print "            '" many f[3] (f[4] ? "=" : "") help value "'"
    }
    print "        )\n        ;;\nesac\n_arguments -S $arguments"
}
