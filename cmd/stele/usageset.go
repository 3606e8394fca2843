package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

func (p *program) usageSetCommand() *cobra.Command {
	var count string
	var public bool
	cmd := &cobra.Command{
		Use:   "set PREFIX",
		Short: "Set how the use of a namespace is counted",
		Long: `Set changes how the use of a namespace is counted, and prints the settings. Without flags it
prints them only. Namespaces below have settings of their own.

Browsers and caches keep redirects for the TTL of a name, and the server does not see the
uses that they answer. With --count all they are told not to keep redirects of the
namespace: all uses are counted, readers wait a little longer, and the server answers
more requests. --count seen is the usual way. Servers follow within half a minute.

With --public all may see the figures of months: those of the namespace on a page of their
own, and those of each name beside it, and in the API without a token. Names that are
reserved or restricted, or whose content was removed, have no public figures; referring
sites, countries, failures and lists of names stay with readers of the namespace.
--public=false ends it.`,
		Example: `  stele usage set ark:12345 --count all
  stele usage set ark:12345 --public
  stele usage set ark:12345`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if count != "" && count != "all" && count != "seen" {
				return usage.Errorf(cmd, "flag.count-unknown", `--count is "{text}"; write all or seen`, count)
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				u, err := l.UsageSettings(ctx, key)
				publish := cmd.Flags().Changed("public")
				if err == nil && (count != "" || publish) {
					u, err = l.SetUsageSettings(ctx, key, func(u *registrar.UsageSettings) {
						if count != "" {
							u.CountAll = count == "all"
						}
						if publish {
							u.Public = public
						}
					})
				}
				switch {
				case err != nil:
					return err
				case p.json:
					return p.printLine(apijson.UsageSettings{CountAll: u.CountAll, Public: u.Public, By: u.By, Changed: u.Changed})
				}
				counted, seen := "the uses that the server sees are counted; caches keep redirects", ""
				if u.CountAll {
					counted = "all uses are counted; caches do not keep redirects"
				}
				if u.Public {
					seen = "; the figures of months are public"
				}
				return p.say("%s: %s%s\n", printable(key.String()), counted, seen)
			})
		},
	}
	cmd.Flags().StringVar(&count, "count", "", "`which` uses are counted: all, or seen for those that no cache answers")
	cmd.Flags().BoolVar(&public, "public", false, "let all see the figures of months")
	usage.Choices(cmd, "count", "all", "seen")
	return usage.NeverFiles(cmd)
}
