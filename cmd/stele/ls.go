package main

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

// lsFlags say what ls lists.
type lsFlags struct {
	after    string
	pointing string
	state    string
	limit    uint64
}

func (p *program) lsCommand() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List identifiers",
		Long: `Ls lists the registered identifiers that begin with PREFIX, in order, one a line;
with --json their records. PREFIX is the beginning of names, such as ark:12345/x5,
or a scheme with a colon, such as ark:. Without it all are listed. Aliases are not
listed.

--pointing looks the other way: which identifiers have a target at this URL, or on
this host, in their current version?

For the next page, give the last identifier of this one to --after.`,
		Example: `  stele ls ark:12345/x5
  stele ls 10.5072/ -n 100 --after 10.5072/RIVERS
  stele ls --state withdrawn urn:
  stele ls --pointing old.example.org
  stele ls --pointing https://example.org/report.pdf --json`,
		Args: atMostOne("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.state != "" && !stele.State(f.state).IsValid():
				return misuse(cmd, "%.60q is no state; there are reserved, active and withdrawn", f.state)
			case f.after != "" && len(args) == 0 && f.pointing == "":
				return misuse(cmd, "--after needs the prefix that is listed, or its scheme, such as ark:")
			}
			prefix := ""
			if len(args) == 1 {
				prefix = args[0]
			}
			return p.lookup(cmd, func(ctx context.Context, r *registry) error {
				return p.ls(ctx, r, prefix, f)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.after, "after", "", "list what comes after this `text`")
	flags.StringVar(&f.pointing, "pointing", "", "list what points at this `URL or host`")
	flags.StringVar(&f.state, "state", "", "list only what is in this state: reserved, active or withdrawn")
	flags.Uint64VarP(&f.limit, "limit", "n", 0, "list so many at most (0: all)")
	choices(cmd, "state", stele.Reserved, stele.Active, stele.Withdrawn)
	return neverFiles(cmd)
}

// ls prints what the flags ask for.
func (p *program) ls(ctx context.Context, r *registry, prefix string, f lsFlags) error {
	keys, err := r.beginnings(prefix)
	if err != nil {
		return err
	}
	list := r.scan(ctx, keys, f.after)
	if f.pointing != "" {
		if list, err = r.pointing(ctx, keys, f.pointing, f.after); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	count := uint64(0)
	for rec, err := range list {
		switch {
		case err != nil:
			return err
		case f.state != "" && rec.State != stele.State(f.state):
			continue
		}
		if err := p.printName(out, rec); err != nil {
			return err
		}
		if count++; count == f.limit {
			break
		}
	}
	return out.Flush()
}

// beginnings returns what a prefix on the command line stands for: itself, or all
// schemes if there is none.
func (r *registry) beginnings(prefix string) (keys []stele.NamespaceKey, err error) {
	if prefix == "" {
		for scheme := range r.schemes.All() {
			keys = append(keys, stele.NamespaceKey{Scheme: scheme.Name()})
		}
		return keys, nil
	}
	if r.schemes.Lookup(prefix) != nil {
		return []stele.NamespaceKey{{Scheme: prefix}}, nil
	}
	key, err := r.parsePrefix(prefix)
	if err != nil {
		// A whole name is the beginning of itself.
		id, noName := r.parse(prefix)
		if noName != nil {
			return nil, err
		}
		key = stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}
	}
	return []stele.NamespaceKey{key}, nil
}

// scan yields the records whose identifiers begin so and come after a text.
func (r *registry) scan(ctx context.Context, keys []stele.NamespaceKey, after string) iter.Seq2[*stele.Record, error] {
	if id, err := r.parse(after); err == nil {
		after = id.String() // in canonical form, as names are listed
	}
	return func(yield func(*stele.Record, error) bool) {
		for _, key := range keys {
			for rec, err := range r.store.Scan(ctx, key.Scheme, key.Prefix, after) {
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}
}

// pointing yields the records that begin so, have a target at a URL or on a host, and
// come after an identifier.
func (r *registry) pointing(ctx context.Context, keys []stele.NamespaceKey, at, after string) (iter.Seq2[*stele.Record, error], error) {
	location := stele.Location{URL: at}
	if !strings.Contains(at, "://") {
		location = stele.Location{Host: strings.ToLower(strings.Trim(at, "[]"))}
	}
	var last stele.ID
	if after != "" {
		var err error
		if last, err = r.parse(after); err != nil {
			return nil, err
		}
	}
	return func(yield func(*stele.Record, error) bool) {
		for id, err := range r.store.Pointing(ctx, location, last) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !beginsWith(id, keys) {
				continue
			}
			rec, err := r.store.Record(ctx, id)
			if errors.Is(err, stele.NotFound) {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}, nil
}

func beginsWith(id stele.ID, keys []stele.NamespaceKey) bool {
	for _, key := range keys {
		if id.Scheme() == key.Scheme && strings.HasPrefix(id.String(), key.Prefix) {
			return true
		}
	}
	return false
}
