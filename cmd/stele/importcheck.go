package main

import (
	"context"
	"fmt"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/resolver"
)

// asker returns where a name leads for the public.
type asker func(ctx context.Context, name string) (foreign.Answer, error)

// How the tests of files were run.
const (
	byFiles    = "against what the files say"
	byResolver = "through the resolver"
	byServer   = "by requests to the server"
)

// runChecks runs the tests that files bring along, and tells which fail. If there is no server to ask, the tests are held against what the
// files say, as after an import into an empty registry.
func (p *program) runChecks(ctx context.Context, source *foreign.Source, ask asker, how string) error {
	checks, err := source.Checks()
	if err != nil || len(checks) == 0 {
		return err
	}
	failed := 0
	for i := range checks {
		c := &checks[i]
		got := source.Foresee(c.Name)
		if ask != nil {
			if got, err = ask(ctx, c.Name); err != nil {
				return err
			}
		}
		if why := c.Failed(got); why != nil {
			failed++
			fmt.Fprintf(p.stderr, "stele: %s\n", printable(why.Error()))
		}
	}
	fmt.Fprintf(p.stderr, "import: %s of %s tests of the files passed, %s\n", grouped(int64(len(checks)-failed)), grouped(int64(len(checks))), how)
	if failed > 0 {
		return refuse("import", stele.Invalid, "import.checks-failed", "{failed} of {all} tests of the files failed", failed, len(checks))
	}
	return nil
}

// asked returns where a name leads by a resolver. A name that is not known, or can't be one, leads nowhere.
func asked(ctx context.Context, l *Registry, r *resolver.Resolver, name string) (got foreign.Answer, err error) {
	id, err := l.Parse(name)
	if err != nil {
		return got, nil
	}
	res, err := r.Resolve(ctx, resolver.Request{ID: id})
	switch kind := stele.KindOf(err); {
	case err != nil && (kind == stele.NotFound || kind == stele.Gone || kind == stele.Invalid):
		return got, nil
	case err != nil:
		return got, err
	case res.Kind != resolver.Redirect:
		return got, nil
	}
	return foreign.Answer{URL: res.URL, Status: res.Status}, nil
}
