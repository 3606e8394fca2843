package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/rules"
)

func (p *program) ruleCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "rule",
		Short: "Manage rules: patterns of names and where they lead",
		Long: `A rule answers for names of a namespace that are not registered: those whose text after the
namespace's prefix has the form of its pattern. Its URLs are templates, into which the parts
of the name are put. The first rule that matches answers; a registered name comes before all.

A pattern is text with captures in braces: a name, a class of characters, and how many there
are. {n:digit,7} is seven digits, {v:digit,1-3} one to three, {x:any} all that follows. The
classes are digit, lower, upper, letter, alnum, word (alnum, _ and -), hex, segment (all but
the slash) and any. {ext=ttl|rdf} is one of some words. In a URL {n} is what n matched, {id}
the whole identifier and {rest} all that follows the prefix.

Every rule has examples: names and where they must lead. They are tried before each change of
the namespace, and a change after which one fails is refused.`,
		Example: `  stele rule add https://purl.example.org/obo/ 'HP_{n:digit,7}' --to 'https://terms.example.org/HP/{n}' \
      --example 'https://purl.example.org/obo/HP_0000118 https://terms.example.org/HP/0000118'
  stele rule ls https://purl.example.org/obo/
  stele rule test https://purl.example.org/obo/ https://purl.example.org/obo/HP_0000001
  stele rule remove https://purl.example.org/obo/ 1`,
	}, p.ruleAddCommand(), p.ruleLsCommand(), p.ruleTestCommand(), p.ruleLoadCommand(), p.ruleRemoveCommand())
}

// ruleFlags are the flags that describe a rule.
type ruleFlags struct {
	to, examples, silent []string
	status, before       int
	rule                 stele.Rule
}

func (f *ruleFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.to, "to", nil, "`URL` with captures in it, or TYPE=URL for clients that accept a media type; may be repeated")
	flags.StringArrayVar(&f.examples, "example", nil, "`'NAME URL'` or 'NAME TYPE URL': a name and where it must lead, or a status such as 410 instead of the URL; at least one, may be repeated")
	flags.StringArrayVar(&f.silent, "no-match", nil, "`name` for which the rule must not answer; may be repeated")
	flags.IntVar(&f.status, "status", 0, "HTTP status of the redirects (default: that of the namespace); with 404, 406 or 410 there is nothing, and no --to")
	flags.StringVar(&f.rule.Reason, "reason", "", "`text` that readers get with the status 404, 406 or 410")
	flags.StringVar(&f.rule.Title, "title", "", "title, for people")
	flags.BoolVar(&f.rule.Fold, "ignore-case", false, "the case of letters does not count")
	flags.IntVar(&f.before, "before", 0, "`number` of the rule before which it comes (default: after all others)")
	usage.Choices(cmd, "status", "301", "302", "303", "307", "308", "404", "406", "410")
}

// make returns the rule that the flags describe.
func (f *ruleFlags) make(cmd *cobra.Command, pattern string) (stele.Rule, error) {
	r := f.rule
	r.Pattern = pattern
	for _, to := range f.to {
		r.Targets = append(r.Targets, rules.ParseTarget(to, f.status))
	}
	if len(f.to) == 0 && stele.IsEmptyStatus(f.status) {
		r.Targets = append(r.Targets, rules.ParseTarget("", f.status))
	}
	for _, text := range f.examples {
		x, ok := rules.ParseExample(text)
		if !ok {
			return r, usage.Errorf(cmd, "flag.rule-example", "--example needs a name, a blank, and the URL to which it must lead: --example 'ark:12345/x1 https://example.org/1'")
		}
		r.Examples = append(r.Examples, x)
	}
	for _, name := range f.silent {
		r.Examples = append(r.Examples, stele.RuleExample{Name: name})
	}
	return r, nil
}

func (p *program) ruleAddCommand() *cobra.Command {
	var f ruleFlags
	var dry bool
	cmd := &cobra.Command{
		Use:   "add PREFIX PATTERN",
		Short: "Add a rule to a namespace",
		Long: `Add adds a rule to a namespace, and prints its number. The examples of all rules of the
namespace are tried first; if one fails, nothing is written. Other rules that match the same
names are reported: the first one answers.`,
		Example: `  stele rule add https://purl.example.org/obo/ 'HP_{n:digit,7}' --to 'https://terms.example.org/HP/{n}' \
      --to 'text/turtle=https://data.example.org/{n}.ttl' --status 303 \
      --example 'https://purl.example.org/obo/HP_0000118 https://terms.example.org/HP/0000118' \
      --example 'https://purl.example.org/obo/HP_0000118 text/turtle https://data.example.org/0000118.ttl' \
      --no-match https://purl.example.org/obo/HP_118
  stele rule add https://purl.example.org/obo/ 'old/{x:any}' --status 410 --reason 'They were replaced in 2020.' \
      --example 'https://purl.example.org/obo/old/1 410'`,
		Args: twoArguments("the prefix of a namespace and a pattern"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rule, err := f.make(cmd, args[1])
			if err != nil {
				return err
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				at := 0
				ns, err := p.setRules(ctx, l, key, dry, func(list []stele.Rule) ([]stele.Rule, error) {
					at = len(list)
					if f.before != 0 {
						if f.before < 1 || f.before > len(list) {
							return nil, refuse("add rule", stele.Invalid, "rule.number-unknown", "{namespace} has {count} rules, and no rule {number}; 'stele rule ls {namespace}' lists them", key, len(list), f.before)
						}
						at = f.before - 1
					}
					return slices.Insert(slices.Clone(list), at, rule), nil
				})
				if err != nil {
					return err
				}
				p.warnOverlaps(l, ns)
				return p.printRule(ns, at)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "try the rule and its examples, and write nothing")
	return usage.NeverFiles(cmd)
}

func twoArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usage.Errorf(cmd, "argument.two-needed", "give {arguments}", what)
		}
		return nil
	}
}

// setRules changes the rules of a namespace, or only judges the change.
func (p *program) setRules(ctx context.Context, l *Registry, key stele.NamespaceKey, dry bool, change func([]stele.Rule) ([]stele.Rule, error)) (*stele.Namespace, error) {
	if dry {
		ns, err := l.Namespace(ctx, key)
		if err != nil {
			return nil, err
		}
		next := *ns
		if next.Rules, err = change(ns.Rules); err != nil {
			return nil, err
		}
		return &next, judgeRules(ctx, l, &next)
	}
	return l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) (err error) {
		ns.Rules, err = change(ns.Rules)
		return err
	})
}

// judgeRules judges the rules of a namespace as the registry does.
func judgeRules(ctx context.Context, l *Registry, ns *stele.Namespace) error {
	if err := ns.Validate(); err != nil {
		return err
	}
	problems, err := l.JudgeRules(ctx, ns)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return &stele.Error{Op: "test rules", Kind: stele.Invalid, Err: problems}
	}
	return nil
}

// warnOverlaps tells of names that two rules match.
func (p *program) warnOverlaps(l *Registry, ns *stele.Namespace) {
	set, _ := rules.Compile(ns)
	overlaps, all := set.Overlaps(l.Schemes, ns)
	for _, o := range overlaps {
		fmt.Fprintf(p.stderr, "note: rules %d and %d both match %s; rule %d answers, since it comes first\n", o.Earlier+1, o.Later+1, printable(o.Name), o.Earlier+1)
	}
	if !all {
		fmt.Fprintf(p.stderr, "note: not all pairs of rules were compared; others may match the same names too\n")
	}
}

// printRule prints a rule.
func (p *program) printRule(ns *stele.Namespace, at int) error {
	r := &ns.Rules[at]
	if p.json {
		_, err := p.stdout.Write(terminal.EscapeUnseen(append(document.AppendRule(nil, r), '\n')))
		return err
	}
	return p.say("%d  %s\n", at+1, printable(r.Pattern))
}

func (p *program) ruleLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls PREFIX",
		Short: "List the rules of a namespace",
		Long: `Ls prints the rules of a namespace in their order: number, pattern, where they lead, and
their examples. With --json it prints one rule per line, as 'stele rule load' reads them.`,
		Example: "  stele rule ls https://purl.example.org/obo/\n  stele rule ls --json https://purl.example.org/obo/ > rules.jsonl",
		Args:    usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				ns, err := l.Namespace(ctx, key)
				if err != nil {
					return err
				}
				for i := range ns.Rules {
					if err := p.printRule(ns, i); err != nil {
						return err
					}
					if !p.json {
						writeRule(p.stdout, &ns.Rules[i])
					}
				}
				return nil
			})
		},
	})
}

// writeRule writes the details of a rule.
func writeRule(w io.Writer, r *stele.Rule) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "     %-8s %s\n", name, printable(text))
		}
	}
	line("title", r.Title)
	if r.Fold {
		line("case", "does not count")
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		text := t.URL
		for _, more := range []string{t.Type, t.Language} {
			if more != "" {
				text += "  " + more
			}
		}
		if t.Status != 0 {
			text = strings.TrimSpace(text + "  " + strconv.Itoa(t.Status))
		}
		line("to", text)
	}
	line("reason", r.Reason)
	for _, x := range r.Examples {
		switch {
		case x.Want == "":
			line("example", x.Name+" -> no match")
		case x.Type == "":
			line("example", x.Name+" -> "+x.Want)
		default:
			line("example", x.Name+" as "+x.Type+" -> "+x.Want)
		}
	}
}

func (p *program) ruleRemoveCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "remove PREFIX NUMBER",
		Short: "Remove a rule from a namespace",
		Long: `Remove removes a rule, given by its number in 'stele rule ls', and prints it. The names that
it answered for lead nowhere, unless another rule matches them; the history of the namespace
keeps the rule.`,
		Example: "  stele rule remove https://purl.example.org/obo/ 2",
		Args:    twoArguments("the prefix of a namespace and the number of a rule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[1])
			if err != nil {
				return usage.Errorf(cmd, "argument.rule-number", `"{text}" is not the number of a rule; 'stele rule ls' prints the numbers`, args[1])
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				var gone stele.Rule
				_, err := p.setRules(ctx, l, key, false, func(list []stele.Rule) ([]stele.Rule, error) {
					if number < 1 || number > len(list) {
						return nil, refuse("remove rule", stele.NotFound, "rule.number-unknown", "{namespace} has {count} rules, and no rule {number}; 'stele rule ls {namespace}' lists them", key, len(list), number)
					}
					gone = list[number-1]
					return slices.Delete(slices.Clone(list), number-1, number), nil
				})
				if err != nil {
					return err
				}
				return p.printRule(&stele.Namespace{Rules: append(make([]stele.Rule, number-1), gone)}, number-1)
			})
		},
	})
}

// readRules reads the rules in a file.
func (p *program) readRules(name string) ([]stele.Rule, error) {
	text, err := p.readUpTo(name, maxRuleFile)
	if err != nil {
		return nil, err
	}
	return document.DecodeRules(text)
}

// maxRuleFile is the size of the largest file of rules.
const maxRuleFile = 4 * stele.MaxRuleText

func (p *program) ruleLoadCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "load PREFIX FILE",
		Short: "Replace the rules of a namespace by those in a file",
		Long: `Load replaces all rules of a namespace by those in FILE: JSON, one rule per line as
'stele rule ls --json' prints them, or a list. With - for FILE load reads standard input. The
examples are tried first; if one fails, nothing is written.`,
		Example: `  stele rule load https://purl.example.org/obo/ rules.jsonl --dry-run
  stele rule load https://purl.example.org/obo/ rules.jsonl`,
		Args: twoArguments("the prefix of a namespace and a file with rules"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := p.readRules(args[1])
			if err != nil {
				return err
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				ns, err := p.setRules(ctx, l, key, dry, func([]stele.Rule) ([]stele.Rule, error) { return list, nil })
				if err != nil {
					return err
				}
				p.warnOverlaps(l, ns)
				if p.json {
					return p.printPrefix(p.stdout, ns)
				}
				verb := "has"
				if dry {
					verb = "could have"
				}
				return p.say("%s %s %d rules\n", printable(key.String()), verb, len(ns.Rules))
			})
		},
		ValidArgsFunction: usage.Files,
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "try the rules and their examples, and write nothing")
	return cmd
}

// ruleLine is what a rule answers for a name, in JSON.
type ruleLine struct {
	Name    string `json:"name"`
	Rule    int    `json:"rule,omitempty"` // its number, from 1; none answers without it
	Pattern string `json:"pattern,omitempty"`
	URL     string `json:"url,omitempty"`
	Status  int    `json:"status,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (p *program) ruleTestCommand() *cobra.Command {
	var accept, file string
	cmd := &cobra.Command{
		Use:   "test PREFIX [NAME...]",
		Short: "Try the rules of a namespace",
		Long: `Test prints which rule answers for each NAME, and where the name leads if it is not
registered. It exits with 3 if no rule answers for one of them. Without names it runs the
examples of all rules, and exits with 1 if one fails. It writes nothing.

With --file it tries the rules in a file, as 'stele rule load' would set them.`,
		Example: `  stele rule test https://purl.example.org/obo/
  stele rule test https://purl.example.org/obo/ --accept text/turtle https://purl.example.org/obo/HP_0000001
  stele rule test https://purl.example.org/obo/ --file rules.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf(cmd, "argument.two-needed", "give {arguments}", "the prefix of a namespace, and names to try")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				ns, err := l.Namespace(ctx, key)
				if err != nil {
					return err
				}
				if file != "" {
					own := *ns
					if own.Rules, err = p.readRules(file); err != nil {
						return err
					}
					ns = &own
				}
				if len(args) == 1 {
					if err := judgeRules(ctx, l, ns); err != nil {
						return err
					}
					p.warnOverlaps(l, ns)
					return p.sayExamples(ns)
				}
				return p.tryRules(l, ns, args[1:], accept)
			})
		},
	}
	cmd.Flags().StringVar(&accept, "accept", "", "media `type` that the client accepts (default: any)")
	cmd.Flags().StringVar(&file, "file", "", "try the rules in this `file` instead of those of the namespace")
	return usage.NeverFiles(cmd)
}

// sayExamples says that all examples hold.
func (p *program) sayExamples(ns *stele.Namespace) error {
	count := 0
	for i := range ns.Rules {
		count += len(ns.Rules[i].Examples)
	}
	if p.json {
		return p.printObject(struct {
			Namespace string `json:"namespace"`
			Rules     int    `json:"rules"`
			Examples  int    `json:"examples"`
		}{ns.Key().String(), len(ns.Rules), count})
	}
	return p.say("%d rules, %d examples: all hold\n", len(ns.Rules), count)
}

// tryRules prints what rules answer for names.
func (p *program) tryRules(l *Registry, ns *stele.Namespace, names []string, accept string) error {
	set, problems := rules.Compile(ns)
	if len(problems) > 0 {
		return &stele.Error{Op: "test rules", Kind: stele.Invalid, Err: problems}
	}
	missing := ""
	for _, name := range names {
		o, err := set.Try(l.Schemes, ns, name, accept)
		if err != nil {
			return err
		}
		line := ruleLine{Name: name, URL: o.URL, Status: o.Status}
		text := "no rule answers"
		if o.Rule >= 0 {
			line.Rule, line.Pattern = o.Rule+1, ns.Rules[o.Rule].Pattern
			text = fmt.Sprintf("rule %d -> %s", line.Rule, o.String())
		} else if missing == "" {
			missing = name
		}
		if o.Err != nil {
			line.Error = o.Err.Error()
		}
		if p.json {
			err = p.printLine(line)
		} else {
			err = p.say("%s  %s\n", printable(name), printable(text))
		}
		if err != nil {
			return err
		}
	}
	if missing != "" {
		return refuse("test rules", stele.NotFound, "rule.no-answer", "no rule of {namespace} answers for {name}", ns.Key(), missing)
	}
	return nil
}
