# usage: bash completion.bash SCRIPT <lines
# Prints what bash offers after each line, as "line<tab>match". Words end as COMP_WORDBREAKS says: at spaces, = and :.
source "$1" || exit 1
while IFS= read -r line; do
    COMP_WORDS=() word=
    for ((at = 0; at < ${#line}; at++)); do
        case ${line:at:1} in
        ' ') [[ $word ]] && COMP_WORDS+=("$word") && word= ;;
        [=:]) COMP_WORDS+=("$word" "${line:at:1}") && word= ;;
        *) word+=${line:at:1} ;;
        esac
    done
    if [[ $word || ${line: -1} == ' ' ]]; then COMP_WORDS+=("$word"); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    "$(complete -p weir | sed -n 's/.*-F \([^ ]*\) .*/\1/p')"
    for match in "${COMPREPLY[@]}"; do printf '%s\t%s\n' "$line" "$match"; done
done
