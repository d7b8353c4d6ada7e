# usage: zsh -f completion.zsh FOLDER <lines
# Prints what zsh offers after each line, as "line<tab>match". FOLDER has the file _weir, and gets other files. Zsh completes
# only on a terminal, so an interactive zsh runs on a pseudo-terminal; its compadd notes the matches. It begins when it first
# waits for a line.
zmodload zsh/zpty || exit 77
export WEIR_WORK=$1 ZDOTDIR=$1 TERM=dumb
cat >$WEIR_WORK/lines
cat >$WEIR_WORK/.zshrc <<'ZSH'
PROMPT= RPROMPT= LISTMAX=100000
fpath=($WEIR_WORK $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
    local -a matches
    local match
    if [[ "$*" == *-[ADO]\ * ]]; then # it fills an array and offers nothing
        builtin compadd "$@"
        return
    fi
    builtin compadd -O matches "$@"
    for match in $matches; do
        print -r -- "$weir_line"$'\t'"$match" >>$WEIR_WORK/offered
    done
    builtin compadd "$@"
}
offer-all() {
    local weir_line
    while IFS= read -r weir_line; do
        BUFFER=$weir_line CURSOR=$#weir_line
        zle list-choices
    done <$WEIR_WORK/lines
    print all offered
    exit
}
zle -N zle-line-init offer-all
ZSH
zpty shell zsh -d -i
zpty -r -m shell said '*all offered*' || exit 1
cat $WEIR_WORK/offered
