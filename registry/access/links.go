package access

import (
	"context"
	"iter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/registrar"
)

// Links checks where names lead.
type Links interface {
	LinkChecks(ctx context.Context, key stele.NamespaceKey) (registrar.LinkChecks, error)
	SetLinkChecks(ctx context.Context, key stele.NamespaceKey, change func(*registrar.LinkChecks)) (registrar.LinkChecks, error)

	// LinkFindings yields what is told about the targets of names that begin with a prefix.
	LinkFindings(ctx context.Context, key stele.NamespaceKey) iter.Seq2[apijson.LinkFinding, error]
	LinkHosts(ctx context.Context, key stele.NamespaceKey) ([]apijson.LinkHost, error)

	// CheckLinks returns what is known of at most 500 names, and has those checked that were not since a time; waiting is how
	// many targets these are.
	CheckLinks(ctx context.Context, ids []stele.ID, since time.Time) (list []apijson.LinkFinding, waiting int, err error)

	// AcceptMoved gives targets at a host the addresses to which they moved, if these are the ones that a digest stands for; without a digest it tells what it would do.
	AcceptMoved(ctx context.Context, key stele.NamespaceKey, host, digest string, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error)

	// LookAtLink keeps what a person saw at a target; answer is that of the finding at which they looked.
	LookAtLink(ctx context.Context, id stele.ID, target int, works bool, answer string) error
}

// WithLinks gives a registry of this process what checks links. It returns false if the registry is at a server, which has
// its own.
func (l *Registry) WithLinks(o check.Options) (*check.Checker, bool) {
	f, near := l.Backend.(*Local)
	if !near {
		return nil, false
	}
	o.Registrar, o.Store = f.Registrar, f.Registry.Store
	f.links = check.New(o)
	return f.links, true
}

// LinkFindings yields what is told about the targets of names.
func (f *Local) LinkFindings(ctx context.Context, key stele.NamespaceKey) iter.Seq2[apijson.LinkFinding, error] {
	return f.links.Findings(ctx, key, "")
}

// LinkHosts returns what is told about whole hosts.
func (f *Local) LinkHosts(ctx context.Context, key stele.NamespaceKey) ([]apijson.LinkHost, error) {
	return f.links.Hosts(ctx, key)
}

// CheckLinks returns what is known of names, and has others checked.
func (f *Local) CheckLinks(ctx context.Context, ids []stele.ID, since time.Time) ([]apijson.LinkFinding, int, error) {
	return f.links.Check(ctx, ids, since)
}

// AcceptMoved gives targets the addresses to which they moved.
func (f *Local) AcceptMoved(ctx context.Context, key stele.NamespaceKey, host, digest string, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error) {
	moves, _, err := bulk.Moves(host, func(after string) iter.Seq2[apijson.LinkFinding, error] {
		return f.links.FindingsOf(ctx, key, bulk.MovedAt(host), after)
	})
	if err != nil {
		return bulk.ReplaceCounts{}, err
	}
	mover := &bulk.Mover{Registrar: f.Registrar, Schemes: f.Registry.Schemes}
	if digest == "" {
		return mover.Judge(ctx, moves, told)
	}
	return mover.Run(ctx, host, moves, digest, told)
}

// LookAtLink keeps what a person saw.
func (f *Local) LookAtLink(ctx context.Context, id stele.ID, target int, works bool, answer string) error {
	return f.links.Look(ctx, id, target, works, answer)
}
