package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

func (p *program) nsSkipCommand() *cobra.Command {
	return neverFiles(&cobra.Command{
		Use:   "skip PREFIX N",
		Short: "Set the counter of a template ahead",
		Long: `Skip sets the counter of the namespace's template to N, so that N names count as
given and the next one is that behind them; with +N, so many ahead of where it is.
It never goes back.

A template whose counter came from a backup, or from another registry, makes no names
until this is done: names may have been given since. Take N so large that the counter
is ahead of all of them. What is skipped is never made.`,
		Example: `  stele ns skip ark:12345/x5 +10000
  stele ns skip ark:12345/x5 250000`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return misuse(cmd, "give a prefix and a number")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			number, ahead := strings.CutPrefix(args[1], "+")
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				return misuse(cmd, "%.60q is no number; give one such as 5000 or +5000", args[1])
			}
			return p.reading(cmd, func(ctx context.Context, l *ledger) error {
				key, err := l.parsePrefix(args[0])
				if err != nil {
					return err
				}
				return p.skip(ctx, l, key, n, ahead)
			})
		},
	})
}

// skip sets a counter to n, or so far ahead.
func (p *program) skip(ctx context.Context, l *ledger, key stele.NamespaceKey, n uint64, ahead bool) error {
	status, err := l.MinterStatus(ctx, key)
	if err != nil {
		return err
	}
	to := n
	if ahead {
		to += status.Given
	}
	if to < n || status.Total > 0 && to > status.Total {
		return refuse("skip", stele.Exhausted, "the template of %s has %s names; %s are given", key, grouped(int64(status.Total)), grouped(int64(status.Given)))
	}
	if err := l.SkipCounter(ctx, key, to); err != nil {
		return err
	}
	if p.json {
		line, err := json.Marshal(map[string]any{"namespace": key.String(), "given": to})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s\n", line)
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "the counter of %s is at %s\n", key, grouped(int64(to)))
	return err
}
