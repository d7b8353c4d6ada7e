#!/bin/sh
# test-labels: nosan
# Shells offer what the program takes, and nothing else: the commands that `weir help` lists, for each the options that its
# --help lists, for each subcommand of ctl the options that it does not refuse, and values where they are known. Bash, zsh
# and fish themselves are asked.
set -eu
export LC_ALL=C
for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || { echo "$shell is missing" >&2; exit 77; }
done
weir=$WEIR_BUILD_DIR/weir
here=$WEIR_SOURCE_DIR/tests/scripts
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "$*" >&2; exit 1; }
export HOME="$dir"

# ---- what is to be offered: "line<tab>match", from the program's help ----

offer() { # offer line matches...
    line=$1
    shift
    for match; do printf '%s\t%s\n' "$line" "$match"; done
}
rows() { sed -n "s/^  \($1\).*/\1/p"; }

# shellcheck disable=SC2046,SC2086,SC2013  # lists of words
expect() {
    "$weir" help | sed -n 's/^  weir \([a-z ]*[a-z]\) .*/\1/p; s/^  weir \([a-z]*\)$/\1/p' |
        sed 's/^\([a-z]* [a-z]*\)  .*/\1/; s/^\([a-z]*\)  .*/\1/' >"$dir/commands"
    [ "$(wc -l <"$dir/commands")" -ge 14 ] || die "only these commands: $(cat "$dir/commands")"
    offer 'weir ' $(cut -d' ' -f1 "$dir/commands" | sort -u)
    for group in $(sed -n 's/ .*//p' "$dir/commands" | sort -u); do
        offer "weir $group " $(sed -n "s/^$group //p" "$dir/commands")
        offer "weir help $group " $(sed -n "s/^$group //p" "$dir/commands")
    done
    while read -r command; do
        case $command in 'bench load') continue ;; esac # its options are those of weir-bench
        "$weir" $command --help >"$dir/help"
        offer "weir $command --" $(rows '--[a-z-]*' <"$dir/help")
        sed -n 's/^  \(--[a-z-]*\) \([a-z]*|[a-z|]*\) .*/\1 \2/p' "$dir/help" | while read -r option values; do
            offer "weir $command $option " $(echo "$values" | tr '|' ' ')
            offer "weir $command $option=" $(echo "$values" | tr '|' ' ')
        done
    done <"$dir/commands"
    expect_ctl
    expect_values
}

# A subcommand of ctl refuses the options of others.
# shellcheck disable=SC2046,SC2086
expect_ctl() {
    "$weir" ctl --help | sed -n '/^  --/q; s/^  \([a-z]\)/\1/p' | sed 's/   .*//' |
        sed 's/^\([a-z-]* [a-z]*\) [^a-z].*/\1/; s/^\([a-z-]*\) [^a-z].*/\1/' >"$dir/words"
    [ "$(wc -l <"$dir/words")" -ge 19 ] || die "only these words of ctl: $(cat "$dir/words")"
    offer 'weir ctl ' $(cut -d' ' -f1 "$dir/words" | sort -u)
    offer 'weir ctl --admin 127.0.0.1:8082 key ' $(sed -n 's/^key //p' "$dir/words")
    options=$("$weir" ctl --help | rows '--[a-z-]*')
    while read -r words; do
        for option in $options; do
            case $option in
            --json) set -- "$option" ;;
            --for) set -- "$option" 1h ;;
            *) set -- "$option" 1 ;;
            esac
            "$weir" ctl $words --admin "unix:$dir/none" "$@" </dev/null 2>&1 | grep -q "has no $option" ||
                offer "weir ctl $words --" "$option"
        done
    done <"$dir/words"
}

# Values that the help describes in words, files and folders.
expect_values() {
    offer 'weir serve --log-level ' error warning info debug
    offer 'weir serve --client-field x-' x-forwarded-for x-real-ip
    offer 'weir serve --tls-listeners http,' http resp grpc admin metrics
    offer 'weir simulate --shape steady,b' burst
    offer 'weir simulate --algorithm t' token_bucket
    offer 'weir replay --algorithm s' stepped_bucket sliding_window sliding_log
    offer 'weir ctl mode ' enforce shadow
    offer 'weir completion ' bash zsh fish
    for line in 'serve --config ' 'serve --tls-cert=' 'config check ' 'config show ' 'replay ' 'ctl put '; do
        offer "weir $line" folder rules.yaml
    done
    offer 'weir serve --state ' folder
    offer 'weir config check rules.yaml ' folder rules.yaml
}

# The few differences between shells: fish writes folder/ and --name=value, and a list is offered with its beginning or
# without; zsh leaves the choices of a list out that the line has already.
normal() { sed 's/	--[a-z-]*=/	/; s|/$||; s/	.*,/	/' | grep -v '^weir serve --tls-listeners http,	http$' | sort -u; }

expect | normal >"$dir/expected"
cut -f1 "$dir/expected" | sort -u >"$dir/lines"
printf '%s\n' 'weir version ' 'weir help serve ' 'weir serve --threads ' 'weir check ' >>"$dir/lines" # nothing, or see below
mkdir -p "$dir/work/folder" "$dir/functions"
: >"$dir/work/rules.yaml"
cd "$dir/work"

# ---- what is offered ----

for shell in bash zsh fish; do
    "$weir" completion "$shell" >"$dir/script.$shell" || die "weir completion $shell"
    cmp "$dir/script.$shell" "$WEIR_BUILD_DIR/completion/weir.$shell" || die "the build's completion for $shell is old"
done
cp "$dir/script.zsh" "$dir/functions/_weir"
timeout 100 bash --norc "$here/completion.bash" "$dir/script.bash" <"$dir/lines" >"$dir/bash"
timeout 100 zsh -f "$here/completion.zsh" "$dir/functions" <"$dir/lines" >"$dir/zsh"
# shellcheck disable=SC2016  # variables of fish
timeout 200 fish --no-config -c '
    source $argv[1]
    for line in (cat $argv[2])
        for match in (complete -C $line)
            printf "%s\t%s\n" $line (string split -f1 \t -- $match)
        end
    end' "$dir/script.fish" "$dir/lines" >"$dir/fish"

for shell in bash zsh fish; do
    # After a command that takes no word, bash offers its options, and others nothing.
    normal <"$dir/$shell" | grep -v '^weir check 	--' >"$dir/offered"
    diff "$dir/expected" "$dir/offered" >"$dir/diff" || die "$shell: lacks (<) or should not offer (>): $(cat "$dir/diff")"
done
if "$weir" completion tcsh 2>"$dir/err"; then die "an unknown shell is accepted"; fi
grep -q "found 'tcsh', expected bash|zsh|fish" "$dir/err" || die "$(cat "$dir/err")"
echo "$(wc -l <"$dir/lines") lines, $(wc -l <"$dir/expected") matches, three shells"
