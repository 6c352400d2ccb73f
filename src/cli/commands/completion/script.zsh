#compdef @NAME@
# Completion of @NAME@ in zsh. The program itself returns the candidates: '@NAME@ completion words'.

_@NAME@() {
    local line word meaning program=${~words[1]}
    local -a answer closed open
    answer=("${(@f)$("${(Q)program}" completion words -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")

    for line in "${(@)answer[2,-1]}"; do
        word=${line%%$'\t'*}
        meaning=${line#*$'\t'}
        # No blank is added after an incomplete word, such as --sort=.
        if [[ $word == *[=:,] ]]; then
            open+=("${word//:/\\:}:$meaning")
        else
            closed+=("${word//:/\\:}:$meaning")
        fi
    done

    local found=1
    if (($#closed)); then
        _describe -t values '@NAME@' closed && found=0
    fi
    if (($#open)); then
        _describe -t values '@NAME@' open -S '' && found=0
    fi
    case $answer[1] in
        files\ *)
            compset -P "${(b)answer[1]#files }"
            _files && found=0
            ;;
        directories\ *)
            compset -P "${(b)answer[1]#directories }"
            _files -/ && found=0
            ;;
        command\ *)
            local first=${answer[1]#command }
            shift $first words
            ((CURRENT -= first))
            _normal && found=0
            ;;
    esac
    return found
}

if [[ $funcstack[1] == _@NAME@ ]]; then
    _@NAME@ "$@"
else
    compdef _@NAME@ @NAME@
fi
