package usage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/spelling"
)

// verbsMeant maps words that users try to the verbs that do it.
var verbsMeant = map[string][]string{
	"add": {"register", "ns add", "user add"}, "create": {"register", "mint"}, "new": {"mint", "register"}, "init": {"serve", "register"},
	"delete": {"withdraw"}, "remove": {"withdraw"}, "rm": {"withdraw"}, "del": {"withdraw"}, "tombstone": {"withdraw"},
	"undelete": {"reinstate"}, "restore-record": {"reinstate"},
	"list": {"ls"}, "search": {"find"}, "query": {"find"}, "grep": {"find"}, "dir": {"ls"}, "lookup": {"resolve", "show"},
	"info": {"show", "explain"}, "view": {"show"}, "read": {"show"}, "parse": {"explain"}, "validate": {"explain"},
	"edit": {"update"}, "set": {"update"}, "change": {"update"}, "modify": {"update"}, "versions": {"history"},
	"start": {"serve"}, "run": {"serve"}, "server": {"serve"}, "daemon": {"serve"}, "demo": {"serve --demo"},
	"check": {"verify", "doctor"}, "fsck": {"verify"}, "status": {"doctor", "store status"}, "health": {"doctor"},
	"migrate": {"store migrate"}, "upgrade": {"store migrate"}, "copy": {"store copy"}, "move": {"store copy"},
	"dump": {"export", "backup"}, "load": {"import"}, "fetch": {"get"}, "download": {"get"},
	"login": {"token create"}, "namespace": {"ns"}, "namespaces": {"ns"}, "users": {"user"}, "tokens": {"token"}, "keys": {"key"}, "zones": {"zone"},
	"settings": {"config"}, "dns": {"zone"},
}

// Meant returns the words that users try, and the verbs that do it.
func Meant() map[string][]string { return maps.Clone(verbsMeant) }

// UnknownVerb is the error of a word that is not a verb, with those that may be meant. Err is the
// error of cobra, which says it by text only.
func UnknownVerb(root *cobra.Command, args []string, err error) error {
	text := strings.SplitN(err.Error(), "\n", 2)[0]
	words := slices.DeleteFunc(slices.Clone(args), func(word string) bool {
		return !strings.Contains(text, fmt.Sprintf("%q", word)) || strings.HasPrefix(word, "-")
	})
	return &Error{stele.Messagef("command.unknown-word", "{problem-text}{suggestion}", text, suggestVerb(root, words)), root.Name()}
}

// suggestVerb names the verbs that may be meant by the first of some words; "" if none is
// similar.
func suggestVerb(root *cobra.Command, words []string) string {
	if len(words) == 0 {
		return ""
	}
	word := strings.ToLower(words[0])
	meant := slices.Clone(verbsMeant[word])
	for _, c := range root.Commands() {
		if !c.Hidden && isNear(word, c.Name()) && !slices.Contains(meant, c.Name()) {
			meant = append(meant, c.Name())
		}
	}
	return didYouMean("stele ", meant)
}

// didYouMean asks whether one of some texts was meant; "" if there are none.
func didYouMean(before string, meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	quoted := make([]string, len(meant))
	for i, text := range meant {
		quoted[i] = "'" + before + text + "'"
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}

// isNear reports whether a word is a beginning of another one, or differs from it by one or
// two typing errors.
func isNear(word, other string) bool {
	if len(word) >= 3 && strings.HasPrefix(other, word) {
		return true
	}
	if len(word) > 64 {
		return false
	}
	most := 1
	if min(len(word), len(other)) >= 5 {
		most = 2
	}
	return spelling.Distance(word, other) <= most
}

// flagsMeant maps flags that users try to those that do it, if a verb has them.
var flagsMeant = map[string]string{
	"url": "to", "uri": "to", "target": "to", "location": "to", "redirect": "to",
	"name": "title", "description": "title", "author": "who", "creator": "who", "date": "when",
	"dir": "data", "folder": "data", "directory": "data", "path": "data", "db": "store", "database": "store", "postgres": "store",
	"host": "server", "api": "server", "token": "token-file", "port": "http", "listen": "http", "addr": "http", "address": "http",
	"disable": "disabled", "enable": "disabled=false", "why": "reason", "message": "reason", "count": "limit", "max": "limit",
	"output": "o", "expire": "expires", "ttl": "expires", "role": "group", "format": "json",
}

// FlagError is the error of a flag, in plain words.
func FlagError(cmd *cobra.Command, err error) error {
	return &Error{explainFlag(cmd, err), cmd.CommandPath()}
}

func explainFlag(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return fmt.Errorf("%w%s", err, suggestFlag(cmd, unknown.GetSpecifiedName()))
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	wanted := ""
	switch kind := flag.Value.Type(); {
	case strings.HasPrefix(kind, "uint"):
		wanted = "a whole number from 0 on"
		if bits := strings.TrimPrefix(kind, "uint"); bits == "8" || bits == "16" || bits == "32" {
			wanted = map[string]string{"8": "a whole number from 0 to 255", "16": "a whole number from 0 to 65535", "32": "a whole number from 0 to 4294967295"}[bits]
		}
	case strings.HasPrefix(kind, "int"):
		wanted = "a whole number"
	case strings.HasPrefix(kind, "float"):
		wanted = "a number"
	case kind == "bool":
		wanted = "true or false"
	case kind == "duration":
		wanted = "a length of time, such as 30s, 5m or 24h"
	default:
		return err
	}
	return stele.Messagef("flag.value-malformed", `--{flag} is {expected}, and "{value}" is not`, flag.Name, wanted, invalid.GetValue())
}

// suggestFlag names the flag that may be meant.
func suggestFlag(cmd *cobra.Command, word string) string {
	if meant, ok := flagsMeant[word]; ok {
		name, _, _ := strings.Cut(meant, "=")
		if cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil {
			return didYouMean("--", []string{meant})
		}
	}
	var near []string
	look := func(flag *pflag.Flag) {
		if !flag.Hidden && isNear(word, flag.Name) && !slices.Contains(near, flag.Name) {
			near = append(near, flag.Name)
		}
	}
	cmd.Flags().VisitAll(look)
	cmd.InheritedFlags().VisitAll(look)
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(spelling.Distance(word, a), spelling.Distance(word, b)) })
	return didYouMean("--", near[:min(3, len(near))])
}

// Strict makes wrong usage of cobra's own commands an error: a shell would source
// the help text of "completion", and a script take it for an answer. The group is that of cobra's own
// commands in the help text.
func Strict(root *cobra.Command, group string) {
	root.SetCompletionCommandGroupID(group)
	root.InitDefaultCompletionCmd()
	root.SetHelpCommandGroupID(group)
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [command]",
		Short:   "Help about any command",
		GroupID: group,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return &Error{stele.Messagef("command.not-found-with-hint", `there is no command "{command}"{hint}`, strings.Join(args, " "), suggestVerb(root, args)), root.Name()}
			}
			return about.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if about, _, err := root.Find(args); err == nil {
				for _, c := range about.Commands() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	})
	for _, c := range root.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return &Error{stele.Messagef("command.not-found", `there is no command "{command}"`, cmd.Name()+" "+strings.Join(args, " ")), cmd.CommandPath()}
				}
				return cmd.Help()
			}
		}
	}
}
