package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

func (p *program) nsCheckCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "check PREFIX",
		Short: "List the records that the rules of a namespace would refuse",
		Long: `Check lists the records with a name in the namespace that its rules would refuse
today: a target, handle value or alias that leads to a host or by a protocol that is
not allowed, and a name without the check character that the namespace asks for.

Rules are applied when a record is written. A record that was written before a rule
keeps working until it is changed: correct it with 'stele update', withdraw it, or
allow the host with 'stele ns set'.

All records are read, because a record of another namespace can have an alias in this
one. Check exits with 1 if it found a record.`,
		Example: `  stele ns check ark:12345/x5
  stele ns check --json ark:12345/x5`,
		Args: oneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				key, err := l.parsePrefix(args[0])
				if err != nil {
					return err
				}
				return p.checkRules(ctx, l, key)
			})
		},
	})
}

// breachLine is a record that breaks a rule, as programs see it.
type breachLine struct {
	ID       string        `json:"id"`
	Version  uint64        `json:"version"`
	Problems []problemLine `json:"problems"`
}

// problemLine is a problem as programs see it.
type problemLine struct {
	Path       string            `json:"path"`
	Detail     string            `json:"detail"`
	Code       string            `json:"code,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// checkRules prints the records that break a rule of a namespace.
func (p *program) checkRules(ctx context.Context, l *ledger, key stele.NamespaceKey) error {
	bar := p.newProgress("check", "records", 0, nil)
	defer bar.End()
	found, read := 0, 0
	for b, err := range l.CheckRules(ctx, key, func(n int) {
		bar.Add(n - read)
		read = n
	}) {
		if err != nil {
			return err
		}
		found++
		line := breachLine{ID: b.ID.String(), Version: b.Version}
		for _, problem := range b.Problems {
			if !p.json {
				fmt.Fprintf(p.stdout, "%s: %s\n", printable(b.ID.String()), printable(problem.Error()))
				continue
			}
			one := problemLine{Path: problem.Path, Detail: problem.Err.Error()}
			code, params := stele.CodeOf(problem.Err)
			if one.Code = code; len(params) > 0 {
				one.Parameters = make(map[string]string)
			}
			for _, param := range params {
				one.Parameters[param.Name] = param.Value
			}
			line.Problems = append(line.Problems, one)
		}
		if p.json {
			if err := p.printLine(line); err != nil {
				return err
			}
		}
	}
	if found > 0 {
		return refuse("check", stele.Invalid, "%s records break a rule of %s; correct them with 'stele update', or change the rule with 'stele ns set'", grouped(int64(found)), key)
	}
	if p.json {
		return nil
	}
	_, err := fmt.Fprintf(p.stdout, "no record breaks a rule of %s; %s were read\n", key, grouped(int64(read)))
	return err
}
