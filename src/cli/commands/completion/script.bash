# Completion of @NAME@ in bash 4.4 and later. The program itself returns the candidates: '@NAME@ completion words'.

_@NAME@() {
    local line=${COMP_LINE:0:COMP_POINT} word tail joined candidate i
    local -a words=() starts=() answer=()

    # Bash splits words at = and : as well. Parts without a blank between them are one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${line%%[![:space:]]*}
        joined=$((i > 0 && ${#word} == 0))
        line=${line#"$word"}
        if ((i < COMP_CWORD)); then
            word=${COMP_WORDS[i]}
            line=${line#"$word"}
        else
            word=$line
        fi
        word=${word//[\'\"\\]/}
        if ((joined)); then
            words[-1]+=$word
        else
            words+=("$word")
            starts+=("$i")
        fi
    done

    # What bash replaces: the part behind the last = or :.
    tail=$word
    [[ $tail == [=:]* ]] && tail=
    word=${words[-1]}
    local kept=${word%"$tail"}
    local program=${1/#\~/$HOME}

    mapfile -t answer < <("$program" completion words -- "${words[@]}" 2>/dev/null)
    COMPREPLY=()
    for candidate in "${answer[@]:1}"; do
        candidate=${candidate%%$'\t'*}
        [[ $candidate == "$word"* ]] && COMPREPLY+=("${candidate#"$kept"}")
    done
    case ${answer[0]} in
        files\ *) _@NAME@_files file "${answer[0]#files }" ;;
        directories\ *) _@NAME@_files directory "${answer[0]#directories }" ;;
        command\ *) _@NAME@_command "${answer[0]#command }" ;;
    esac
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=:,] ]]; then
        compopt -o nospace
    fi
}

# Completes names of files or directories, $1. In the word, the prefix $2 precedes the name.
_@NAME@_files() {
    if [[ $2 == "$kept" ]]; then
        # Readline completes file names by itself, and handles tilde and quotes.
        if [[ $1 == file ]]; then compopt -o default; else compopt -o dirnames; fi
        return
    fi
    mapfile -t COMPREPLY < <(compgen -A "$1" -P "${2#"$kept"}" -- "${word#"$2"}")
    compopt -o filenames
}

# Completes the command line of another program, which begins at the word with index $1.
_@NAME@_command() {
    local first=${starts[$1]}
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$first"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$first"
    elif (($1 == ${#words[@]} - 1)) && [[ $word != */* ]]; then
        local -a programs
        mapfile -t programs < <(compgen -c -- "$word" | sort -u)
        COMPREPLY+=("${programs[@]}")
    else
        compopt -o default
    fi
}

complete -F _@NAME@ @NAME@
