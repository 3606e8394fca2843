package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

func (p *program) mintIBICommand() *cobra.Command {
	var f mintFlags
	var pool []string
	cmd := &cobra.Command{
		Use:   "ibi",
		Short: "IBIs, from a host name or an IP address and the time",
		Long: `Mint ibi makes Internet Based Identifiers. With --host it makes repository names,
with --ip it makes IBIps, and with both each new name is a repository name that has an
IBIp of the same date as its alias; --json shows both.

No two names have the same date. --granularity says how close dates may be: at 1s, a
second name waits for the next second. It may be changed at any time.

--pool makes each name in the one of several namespaces that is free first, so ten of
them with one date a second make ten names a second. They must exist ('stele ns add').`,
		Example: `  stele mint ibi --host mtc-m18.sid.inpe.br
  stele mint ibi --host mtc-m18.sid.inpe.br --port 80 --ip 150.163.34.243 --ip-port 800 --json
  stele mint ibi --host mtc-m18.sid.inpe.br --granularity 1us -n 1000000 > names.txt
  stele mint ibi --pool sid.inpe.br/mtc-m18,sid.inpe.br/mtc-m19 -n 10`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server := f.record.given("host", "port", "ip", "ip-port", "allow-private", "granularity")
			if len(pool) > 0 {
				if server {
					return misuse(cmd, "flag.settings-with-pool", "the namespaces of --pool have settings of their own; leave the other settings out")
				}
				return f.run(p, func(_ context.Context, l *Registry) ([]stele.NamespaceKey, error) { return l.ParsePool(pool) })
			}
			if !f.record.given("host", "ip") {
				return misuse(cmd, "flag.ibi-host-missing", "an IBI is made from a server; give its host name with --host, its IP address with --ip, or both")
			}
			want := &stele.Namespace{Scheme: "ibi", Minter: stele.Minter{Kind: stele.MinterIBI}}
			f.minter.apply(&want.Minter)
			return f.run(p, func(ctx context.Context, l *Registry) ([]stele.NamespaceKey, error) {
				if err := l.PlaceIBI(want); err != nil {
					return nil, err
				}
				return f.minter.namespace(ctx, l, want)
			})
		},
	}
	f.minter.addIBI(cmd)
	cmd.Flags().StringSliceVar(&pool, "pool", nil, "`prefixes` of the namespaces to make names in, with commas between them")
	f.add(cmd)
	return neverFiles(cmd)
}

func (p *program) mintPILINCommand() *cobra.Command {
	var f mintFlags
	var prefix string
	cmd := &cobra.Command{
		Use:   "pilin",
		Short: "Handles by PILIN's rule, from the time",
		Long: `Mint pilin makes handles whose suffixes are the millisecond in which they were asked
for, as PILIN did. There are a thousand a second at most.`,
		Example: "  stele mint pilin --prefix 102.100.272\n  stele mint pilin --prefix 102.100.272 --to https://example.org/1 --title 'A letter'",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.runBelow(p, prefix, "102.100.272", stele.Minter{Kind: stele.MinterPILIN})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the handles")
	f.add(cmd)
	return neverFiles(cmd)
}

func (p *program) mintARKCommand() *cobra.Command {
	var f mintFlags
	var naan, shoulder string
	cmd := &cobra.Command{
		Use:   "ark",
		Short: "ARKs, by a template",
		Long: `Mint ark makes ARKs under a Name Assigning Authority Number and a shoulder, by a NOID
template: a dot, the order (r quasi-random, s in order, z in order and without end), a
mask of e (one of 29 characters) and d (a digit), and k for a check character.`,
		Example: `  stele mint ark --naan 12345 --shoulder x5 --template .reedeedk
  stele mint ark --naan 12345 --shoulder x5 -n 1000
  stele mint ark --naan 12345 --shoulder x5 --from catalogue.csv --dry-run`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if naan == "" {
				return misuse(cmd, "flag.naan-missing", "the number of the authority is missing; give it with --naan, such as 12345")
			}
			prefix := "ark:" + naan
			if shoulder != "" {
				prefix += "/" + shoulder
			}
			return f.runBelow(p, prefix, "", stele.Minter{Kind: stele.MinterNOID})
		},
	}
	cmd.Flags().StringVar(&naan, "naan", "", "Name Assigning Authority `number`")
	cmd.Flags().StringVar(&shoulder, "shoulder", "", "with what the names begin, such as x5")
	f.minter.addNOID(cmd)
	f.add(cmd)
	return neverFiles(cmd)
}

// templates is a kind of names that are made by templates below a prefix.
type templates struct {
	name, what, prefix string
}

var (
	hdlTemplates  = templates{"hdl", "Handles", "10.5072"}
	urnTemplates  = templates{"urn", "URNs", "urn:example"}
	lsidTemplates = templates{"lsid", "LSIDs", "urn:lsid:example.org:specimens"}
)

func (p *program) mintTemplateCommand(t templates) *cobra.Command {
	var f mintFlags
	var prefix string
	cmd := &cobra.Command{
		Use:   t.name,
		Short: t.what + ", by a template",
		Long: "Mint " + t.name + " makes " + t.what + ` below a prefix by a NOID template: a dot, the order (r
quasi-random, s in order, z in order and without end), a mask of e (one of 29
characters) and d (a digit), and k for a check character.`,
		Example: "  stele mint " + t.name + " --prefix " + t.prefix + " --template .reedeedk\n" +
			"  stele mint " + t.name + " --prefix " + t.prefix + " --to https://example.org/1",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.runBelow(p, prefix, t.prefix, stele.Minter{Kind: stele.MinterNOID})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the names, such as "+t.prefix)
	f.minter.addNOID(cmd)
	f.add(cmd)
	return neverFiles(cmd)
}

func (p *program) mintUUIDCommand() *cobra.Command {
	var f mintFlags
	var prefix string
	cmd := &cobra.Command{
		Use:   "uuid",
		Short: "Names that end in a UUID, in any scheme that takes one",
		Long: `Mint uuid makes names that are a prefix and a UUID of version 7: the time and random
digits. Nothing needs to be kept to make no name twice.`,
		Example: "  stele mint uuid --prefix urn:example\n  stele mint uuid --prefix 10.5072 -n 10",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.runBelow(p, prefix, "urn:example", stele.Minter{Kind: stele.MinterUUID})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the names")
	f.add(cmd)
	return neverFiles(cmd)
}

// runBelow makes names below a prefix.
func (f *mintFlags) runBelow(p *program, prefix, example string, minter stele.Minter) error {
	if prefix == "" {
		return misuse(f.record.cmd, "flag.prefix-missing", "the prefix is missing; give it with --prefix, such as {example}", example)
	}
	f.minter.apply(&minter)
	return f.run(p, func(ctx context.Context, l *Registry) ([]stele.NamespaceKey, error) {
		key, err := l.ParsePrefix(prefix)
		if err != nil {
			return nil, err
		}
		if _, err := l.Namespace(ctx, key); minter.Kind == stele.MinterNOID && minter.Template == "" && errors.Is(err, stele.NotFound) {
			return nil, misuse(f.record.cmd, "flag.template-missing", "there is no namespace {namespace} yet; say how its names are made with --template, such as .reedeedk", key)
		}
		return f.minter.namespace(ctx, l, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: minter})
	})
}
