# SPDX-License-Identifier: MIT
# The completion for bash: two tables and the function that reads them. Reads the words of keys, then the options.
BEGIN {
    FS = "\t"
    print "# Completion of pnradar for bash, printed from the table of keys and the options of each program.\n"
    print "_pnradar_words() { # KEY or PROGRAM:OPTION or PROGRAM: or keys"
    print "    case $1 in"
}
FNR == NR {
    n = split($0, word, " ")
    keys = keys " " word[1] "="
    if (n > 1) print "    " word[1] ") echo '" substr($0, length(word[1]) + 2) "' ;;"
    next
}
$3 == "" { # the operand
    if ($4 ~ /\|/) { gsub(/\|/, " ", $4); commands[$1] = " " $4 }
    programs = programs " " $1
    next
}
{
    names[$1] = names[$1] " " ($2 ? $2 " " : "") $3
    words = $4 ~ /\|/ ? $4 : $4 ~ /KEY=VALUE/ ? "keys" : $4 ~ /^(FILE|FOLDER|RECORDING)/ ? "files" : $4 ? "none" : ""
    gsub(/\|/, " ", words)
    if (words) print "    " $1 ":" $3 ($2 ? " | " $1 ":" $2 : "") ") echo '" words "' ;;"
}
END {
    for (program in names) print "    " program ":) echo '" substr(names[program], 2) commands[program] "' ;;"
    print "    keys) echo '" substr(keys, 2) "' ;;"
    print "    esac\n}\n"
    while ((getline line < (ENVIRON["COMPLETE_FOLDER"] "/completion.bash")) > 0) print line
    print "\ncomplete -o default -F _pnradar" programs
}
