package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
)

// foreignFlags are the flags of import for files of other systems.
type foreignFlags struct {
	from       string
	prefix     string
	format     string
	admins     bool
	secrets    bool
	namespaces bool
}

// fromHandle is the system that can be read while it runs.
const fromHandle = "handle"

func (h *foreignFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	systems, formats := []foreign.Format{foreign.Auto}, []foreign.Format{foreign.Auto}
	for _, s := range foreign.Systems() {
		systems, formats = append(systems, foreign.Format(s.Name)), append(formats, s.Formats...)
	}
	slices.Sort(formats[1:])
	flags.StringVar(&h.from, "from", "", "`system` that the files come from: "+listed(systems)+"; auto looks at how the first file begins")
	flags.StringVar(&h.format, "format", string(foreign.Auto), "format of the files of another system (default: their beginnings say it)")
	flags.BoolVar(&h.admins, "with-admins", false, "with --from handle: also import values that grant rights, HS_ADMIN, HS_VLIST and HS_PUBKEY; for administrators. With --from noid: keep egg's permissions in the metadata")
	flags.BoolVar(&h.secrets, "with-secrets", false, "with --from handle: also import secrets, HS_SECKEY, and keep them encrypted; for administrators")
	flags.BoolVar(&h.namespaces, "create-namespaces", false, "with --from: make a namespace for each prefix that has none, if the files say which prefixes there are; for arklet, EZID, Shlink, YOURLS and Kutt that of --prefix, or the shortest prefix of each name, such as its NAAN")
	flags.StringVar(&h.prefix, "prefix", "", "with --from: `text` that stands before names which are not identifiers in the files, such as hdl: (with --from noid names that begin with a NAAN are ARKs)")
	usage.Choices(cmd, "from", systems...)
	usage.Choices(cmd, "format", slices.Compact(formats)...)
}

// listed returns names with commas between them.
func listed(names []foreign.Format) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// check finds what is wrong with the flags of an import of files of another system.
func (h *foreignFlags) check(cmd *cobra.Command, o *importOptions) error {
	if h.from == string(foreign.Auto) {
		return h.checkFiles(cmd, o)
	}
	s := foreign.SystemNamed(h.from)
	switch {
	case s == nil:
		return usage.Errorf(cmd, "flag.from-unknown", `files of "{system}" are not known; 'stele import --help' lists the systems`, h.from)
	case h.prefix != "" && !s.Names:
		return usage.Errorf(cmd, "flag.prefix-not-used", "names in files of {system} are identifiers; leave --prefix out", s.Title)
	case h.format != string(foreign.Auto) && !slices.Contains(s.Formats, foreign.Format(h.format)):
		return usage.Errorf(cmd, "flag.foreign-format-unknown", `"{format}" is not a format of files of {system}; there are {formats}`, h.format, s.Title, listed(append([]foreign.Format{foreign.Auto}, s.Formats...)))
	case len(o.Columns) > 0 && !s.Tables:
		return usage.Errorf(cmd, "flag.map-not-used", "--map is for tables, not for files of {system}", s.Title)
	case h.secrets && !s.Secrets:
		return usage.Errorf(cmd, "flag.secrets-not-used", "--with-secrets is for Handle servers, not for files of {system}", s.Title)
	case h.admins && !s.Grants:
		return usage.Errorf(cmd, "flag.admins-not-used", "files of {system} grant no rights here; leave --with-admins out", s.Title)
	case o.live.isGiven() && h.from != fromHandle:
		return usage.Errorf(cmd, "flag.live-handle-only", "--live is for Handle servers, not for {system}", s.Title)
	}
	return h.checkFiles(cmd, o)
}

// checkFiles finds what is wrong with the flags that files of all systems have.
func (h *foreignFlags) checkFiles(cmd *cobra.Command, o *importOptions) error {
	if o.EmptyClears || cmd.Flags().Changed("encoding") {
		return usage.Errorf(cmd, "flag.csv-only", "--empty-clears and --encoding are for CSV files of your own, not for those of another system")
	}
	if _, err := o.names(); err != nil {
		return usage.Errorf(cmd, "", "--map: {cause}", err)
	}
	return o.live.check(cmd)
}

// unused refuses flags that need --from.
func (h *foreignFlags) unused(cmd *cobra.Command) error {
	for _, name := range append([]string{"format", "with-admins", "with-secrets", "create-namespaces", "prefix", "live", "live-site"}, liveNames...) {
		if cmd.Flags().Changed(name) {
			return usage.Errorf(cmd, "flag.without-from", "--{flag} is for files of another system; give --from too", name)
		}
	}
	return nil
}

// names returns what tables and columns of SQL are called in the files, with their usual names.
func (o *importOptions) names() (map[string]string, error) {
	names := make(map[string]string)
	for _, text := range o.Columns {
		theirs, usual, ok := strings.Cut(text, "=")
		if !ok || theirs == "" || usual == "" {
			return nil, stele.Messagef("flag.map-not-a-pair", `"{text}" is not NAME=NAME, such as pids=handles`, text)
		}
		names[strings.ToLower(theirs)] = strings.ToLower(usual)
	}
	return names, nil
}

// importHandles imports files of a Handle server.
func (p *program) importHandles(cmd *cobra.Command, paths []string, o importOptions) (err error) {
	if far, err := p.isRemote(cmd); err != nil {
		return err
	} else if far && o.handle.secrets && !remote.IsPrivate(p.remote.server) {
		return usage.Errorf(cmd, "flag.secrets-not-remote", "--with-secrets would send secrets in clear to {server}; use https, or import on the machine of the registry, with --data or --store", p.remote.server)
	}
	if o.live.isGiven() {
		return p.importLive(cmd, paths, o)
	}
	var files []*bulk.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	size := int64(0)
	if s := foreign.SystemNamed(o.handle.from); isTree(s, paths) {
		f, err := p.openTree(s, paths)
		if err != nil {
			return err
		}
		files, size, paths = []*bulk.File{f}, f.Size, nil
	}
	for _, path := range paths {
		if isBerkeley(path) {
			return refuse("import", stele.Invalid, "import.handle-bdbje", "{path} is the database of a Handle server, in a form that only Berkeley DB reads; set bdbje_dump_on_checkpoint = yes in its config.dct, run hdl-docheckpoint, and import the files handles-*.dump and nas-*.dump that it writes", path)
		}
		f, err := p.openImport(path)
		if err != nil {
			return err
		}
		files = append(files, f)
		size += f.Size
	}
	p.create = true
	if far, err := p.isRemote(cmd); err != nil {
		return err
	} else if far {
		ask, done, err := p.askServer()
		if err != nil {
			return err
		}
		defer done()
		return p.atServer(cmd, func(ctx context.Context, l *Registry) error {
			return p.importFiles(ctx, l, files, size, o, ask, byServer)
		})
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		l := access.NewLocal(r, p.now, p.place().String())
		ask := func(ctx context.Context, name string) (foreign.Answer, error) { return asked(ctx, l, r.Resolver, name) }
		return p.importFiles(ctx, l, files, size, o, ask, byResolver)
	})
}

// importFiles imports files into a registry, and runs the tests that they bring along, if there are some, by what answers for
// the registry.
func (p *program) importFiles(ctx context.Context, l *Registry, files []*bulk.File, size int64, o importOptions, ask asker, how string) error {
	if err := mayKeep(ctx, l, o); err != nil {
		return err
	}
	if err := mayGrant(ctx, l, o); err != nil {
		return err
	}
	reads, err := p.foreignOptions(ctx, l, &o)
	if err != nil {
		return err
	}
	source, err := foreign.Open(files, reads)
	if err != nil {
		return err
	}
	if o.handle.from == string(foreign.Auto) {
		fmt.Fprintf(p.stderr, "import: the files are those of %s (--from %s)\n", source.System().Title, source.System().Name)
	}
	o.Columns, o.Secrets, o.KeepTypes, o.MarkFirst = nil, o.handle.secrets, reads.LeftOut(), source.Changes()
	err = p.runImport(ctx, l, o, func(o bulk.FileOptions) (*bulk.FileImport, error) {
		im, err := bulk.NewRowsImport(ctx, l, source, files[0], source.Key(), o)
		if err == nil {
			source.Continues(im.Mark.Import)
		}
		return im, err
	}, size)
	p.tellLeftOut(source.Report())
	if ctx.Err() == nil {
		if o.DryRun {
			ask, how = nil, byFiles
		}
		err = errors.Join(err, p.runChecks(ctx, source, ask, how))
	}
	return errors.Join(err, source.Close())
}

// foreignOptions says what is read, and how.
func (p *program) foreignOptions(ctx context.Context, l *Registry, o *importOptions) (reads foreign.Options, err error) {
	have := make(map[string]bool)
	kept := make(map[stele.NamespaceKey]*stele.Namespace)
	for ns, err := range l.Namespaces(ctx) {
		if err != nil {
			return reads, err
		}
		have[ns.Prefix] = true
		if ns.Version > 0 {
			kept[ns.Key()] = ns
		}
	}
	names, err := o.names()
	return foreign.Options{
		System: o.handle.from, Prefix: o.handle.prefix, Find: func(key stele.NamespaceKey) *stele.Namespace { return kept[key] },
		Schemes: l.Schemes, Format: foreign.Format(o.handle.format), Admins: o.handle.admins, Secrets: o.handle.secrets,
		Merges: o.Update && !o.Replace, Namespaces: o.handle.namespaces, Has: func(prefix string) bool { return have[prefix] }, Map: names,
		Registered: foreign.Registered{
			Get:     func(id stele.ID) (*stele.Record, error) { return l.Get(ctx, id) },
			History: func(id stele.ID) iter.Seq2[*stele.Record, error] { return l.History(ctx, id) },
		}, Now: p.now,
	}, err
}

// mayGrant makes sure that the user may import rights and secrets.
func mayGrant(ctx context.Context, l *Registry, o importOptions) error {
	if !o.handle.admins && !o.handle.secrets {
		return nil
	}
	me, err := l.Me(ctx)
	if err == nil && !me.Admin {
		return refuse("import", stele.Forbidden, "import.rights-not-permitted", `"{user}" is not an administrator, and so can't import rights or secrets; leave --with-admins and --with-secrets out`, me.Name)
	}
	return err
}

// tellLeftOut tells what of the files is not in the registry.
func (p *program) tellLeftOut(r foreign.Report) {
	if r.Admins > 0 {
		fmt.Fprintf(p.stderr, "stele: %s values that grant rights were left out; --with-admins imports them\n", grouped(r.Admins))
	}
	if r.Secrets > 0 {
		fmt.Fprintf(p.stderr, "stele: %s secrets (HS_SECKEY) were left out; --with-secrets imports them\n", grouped(r.Secrets))
	}
	const shown = 20
	for i, prefix := range r.Missing {
		if i == shown {
			fmt.Fprintf(p.stderr, "stele: %s more homed prefixes have no namespace\n", grouped(int64(len(r.Missing)-shown)))
			break
		}
		fmt.Fprintf(p.stderr, "stele: the homed prefix %s has no namespace; add it with 'stele ns add %s', or import with --create-namespaces\n", printable(prefix), printable(prefix))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(p.stderr, "stele: %s\n", printable(note.Error()))
	}
}
