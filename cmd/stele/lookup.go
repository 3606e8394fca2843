package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/resolver"
)

// lookup is inRegistry for verbs that only look: they make no new registry where
// there is none.
func (p *program) lookup(cmd *cobra.Command, do func(ctx context.Context, r *registry) error) error {
	if _, err := os.Stat(p.data); errors.Is(err, fs.ErrNotExist) {
		return &stele.Error{Op: "open", Kind: stele.NotFound, Err: fmt.Errorf(
			"there is no registry in %.200q; name its folder with --data, or register something first", p.data)}
	}
	return p.inRegistry(cmd, do)
}

// parsePrefix reads the prefix of a namespace. That of handles may come without its
// slash.
func (r *registry) parsePrefix(text string) (stele.NamespaceKey, error) {
	key, err := r.registrar.ParsePrefix(text)
	if err == nil || strings.HasSuffix(text, "/") {
		return key, err
	}
	if with, slashErr := r.registrar.ParsePrefix(text + "/"); slashErr == nil {
		return with, nil
	}
	return key, err
}

// find returns the record that has a name, at a time if that is not zero, or the
// version of it if that is not 0.
func (r *registry) find(ctx context.Context, text string, at time.Time, version uint64) (*stele.Record, error) {
	id, err := r.parse(text)
	if err != nil {
		return nil, err
	}
	var rec *stele.Record
	switch {
	case !at.IsZero():
		rec, err = r.registrar.At(ctx, id, at)
	case version != 0:
		rec, err = r.version(ctx, id, version)
	default:
		rec, err = r.registrar.Get(ctx, id)
	}
	if err != nil {
		return nil, r.meant(ctx, id, err)
	}
	return rec, nil
}

// version returns one version of a record.
func (r *registry) version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	newest := uint64(0)
	for rec, err := range r.registrar.History(ctx, id) {
		if err != nil {
			return nil, err
		}
		newest = max(newest, rec.Version)
		if rec.Version == version {
			return rec, nil
		}
	}
	return nil, &stele.Error{Op: "show", ID: id, Kind: stele.NotFound, Err: fmt.Errorf(
		"it has no version %d; its versions are 1 to %d", version, newest)}
}

// meant adds to the error of a name that is not found what may have been meant, if
// its check character shows a slip of the hand.
func (r *registry) meant(ctx context.Context, id stele.ID, err error) error {
	if !errors.Is(err, stele.NotFound) {
		return err
	}
	_, unknown := r.resolver.Resolve(ctx, resolver.Request{ID: id})
	if e, ok := errors.AsType[*resolver.UnknownError](unknown); ok && e.Mistyped {
		return &stele.Error{Op: "show", ID: id, Kind: stele.NotFound, Err: e}
	}
	return err
}

// parseMoment reads a date, which stands for its end, or a time; both in UTC if they
// do not say otherwise.
func parseMoment(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-1), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.60q is no date; write 2024-05-17, or 2024-05-17T10:00:00Z", text)
}
