package access

import (
	"context"

	"github.com/stele-id/stele/bulk"
)

// Replace gives targets of many records another beginning.
type Replace interface {
	// JudgeReplacement tells what a replacement would do to each record.
	JudgeReplacement(ctx context.Context, r bulk.Replacement, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error)

	// Replace writes it, if so many records change. When it is cut off, the same call goes on.
	Replace(ctx context.Context, r bulk.Replacement, expect int, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error)
}

// JudgeReplacement tells what a replacement would do to each record.
func (f *Local) JudgeReplacement(ctx context.Context, r bulk.Replacement, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error) {
	return f.replacer(r).Judge(ctx, told)
}

// Replace gives targets of many records another beginning.
func (f *Local) Replace(ctx context.Context, r bulk.Replacement, expect int, told func(bulk.Replaced) error) (bulk.ReplaceCounts, error) {
	return f.replacer(r).Run(ctx, expect, told)
}

func (f *Local) replacer(r bulk.Replacement) *bulk.Replacer {
	return &bulk.Replacer{Replacement: r, Registrar: f.Registrar, Schemes: f.Registry.Schemes}
}
