package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registry"
)

// ledger is the registry as verbs see it, whoever keeps it.
type ledger struct {
	keeper
	schemes *stele.Schemes
	now     func() time.Time
	place   string // where it is, for messages
	chunk   int    // how many records of an import are committed together
}

// creating is writing for the verbs with which a registry begins: they make one in the
// data folder if there is none.
func (p *program) creating(cmd *cobra.Command, do func(ctx context.Context, l *ledger) error) error {
	p.create = true
	return p.writing(cmd, do)
}

// writing calls do with the registry, and with a context that an interrupt ends: that
// of a server if one is named, or else that of the database or of the data folder.
// NotFound if there is none.
func (p *program) writing(cmd *cobra.Command, do func(ctx context.Context, l *ledger) error) error {
	far, err := p.isRemote(cmd)
	if err != nil {
		return err
	}
	if far {
		return p.atServer(cmd, do)
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		return do(ctx, &ledger{keeper: &folder{r.Registrar, r}, schemes: r.Schemes, now: p.now, place: p.place().String(), chunk: bulk.ChunkRows})
	})
}

// reading is writing for verbs that only look.
func (p *program) reading(cmd *cobra.Command, do func(ctx context.Context, l *ledger) error) error {
	return p.writing(cmd, do)
}

// hasFolder makes sure that there is a registry at hand.
func (p *program) hasFolder() error { return p.place().Exists() }

// parse reads an identifier that stands on the command line.
func (l *ledger) parse(text string) (stele.ID, error) { return l.schemes.Parse(text) }

// parsePrefix reads the prefix of a namespace. That of handles may come without its
// slash.
func (l *ledger) parsePrefix(text string) (stele.NamespaceKey, error) {
	key, err := namespaces.ParsePrefix(l.schemes, text)
	if err == nil || strings.HasSuffix(text, "/") {
		return key, err
	}
	if with, slashErr := namespaces.ParsePrefix(l.schemes, text+"/"); slashErr == nil {
		return with, nil
	}
	return key, err
}

// find returns the record that has a name, at a time if that is not zero, or the
// version of it if that is not 0.
func (l *ledger) find(ctx context.Context, text string, at time.Time, version uint64) (*stele.Record, error) {
	id, err := l.parse(text)
	if err != nil {
		return nil, err
	}
	var rec *stele.Record
	switch {
	case !at.IsZero():
		rec, err = l.At(ctx, id, at)
	case version != 0:
		rec, err = l.Version(ctx, id, version)
	default:
		rec, err = l.Get(ctx, id)
	}
	if err != nil {
		return nil, l.Meant(ctx, id, err)
	}
	return rec, nil
}
