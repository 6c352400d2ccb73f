# Completion of @NAME@ in fish. The program itself returns the candidates: '@NAME@ completion words'.

function __@NAME@_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct | string collect)
    set -l plain (string replace -ra '[\'"\\\\]' '' -- "$word" | string collect)
    set -l answer ($words[1] completion words -- $words "$plain" 2>/dev/null)
    set -q answer[1]
    or return

    printf '%s\n' $answer[2..-1]
    set -l source (string split -m 1 ' ' -- $answer[1])
    switch $source[1]
        case files directories
            set -l name (string sub -s (math (string length -- "$source[2]") + 1) -- "$plain" | string collect)
            set -l complete __fish_complete_path
            test $source[1] = directories
            and set complete __fish_complete_directories
            for line in ($complete "$name" '')
                printf '%s%s\n' "$source[2]" "$line"
            end
        case command
            set -l line (string escape -- $words[(math $source[2] + 1)..-1])
            complete -C (string join ' ' -- $line $word | string collect)
    end
end

complete -c @NAME@ -f -a '(__@NAME@_complete)'
