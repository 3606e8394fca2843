package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/cmd/stele/usage"
)

// checkNOID finds what is wrong with the flags of an import from Noid, Nog or egg.
func (h *foreignFlags) checkNOID(cmd *cobra.Command, o *importOptions) error {
	switch {
	case !slices.Contains(foreign.NOIDFormats(), foreign.Format(h.format)):
		return usage.Errorf(cmd, "flag.noid-format-unknown", `"{format}" is not a format of files of Noid; there are auto, db_dump, dbinfo, iddump and json`, h.format)
	case o.EmptyClears || cmd.Flags().Changed("encoding") || len(o.Columns) > 0:
		return usage.Errorf(cmd, "flag.noid-csv-only", "--empty-clears, --encoding and --map are for tables, not for files of Noid")
	case h.secrets || o.live.isGiven():
		return usage.Errorf(cmd, "flag.noid-handle-only", "--with-secrets and --live are for Handle servers, not for files of Noid")
	}
	return nil
}

// openNOID opens files of Noid, Nog and egg.
func (p *program) openNOID(ctx context.Context, l *Registry, files []*bulk.File, reads foreign.Options, prefix string) (*foreign.Source, error) {
	have := make(map[stele.NamespaceKey]*stele.Namespace)
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		if ns.Version > 0 {
			have[ns.Key()] = ns
		}
	}
	return foreign.OpenNOID(files, foreign.NOIDOptions{Options: reads, Prefix: prefix, Find: func(key stele.NamespaceKey) *stele.Namespace { return have[key] }})
}

// tellNOID tells what of the files is not in the registry, and what is to be done with the minter.
func (p *program) tellNOID(r foreign.Report) {
	if r.Admins > 0 {
		fmt.Fprintf(p.stderr, "stele: %s permissions of egg were left out; --with-admins keeps them in the metadata\n", grouped(r.Admins))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(p.stderr, "stele: %s\n", printable(note))
	}
}
