package job

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// MaxPrefix is how many bytes the text has that stands before names of another system.
const MaxPrefix = 500

// maxText is how many bytes of text a file of another system may have: files in an archive may be compressed.
const maxText = 256 << 20

// explainForeign says why files of another system can't be read, if the reader has not said it.
func explainForeign(name string) func(error) error {
	f := &bulk.File{Name: name}
	return func(err error) error {
		if _, told := errors.AsType[*stele.Error](err); told || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return f.ReadError(err)
	}
}

// rowsOf is the rows of an upload, and how they are written.
type rowsOf struct {
	rows    bulk.Rows
	all     iter.Seq2[*bulk.Row, error] // the same rows one after the other
	explain func(error) error           // says why reading failed
	pool    []stele.NamespaceKey        // in which rows without names get them
	keep    bool                        // when records were made and changed elsewhere is kept
	leftOut []string                    // types of handle values that the file is not asked for

	text   *bulk.Reader    // nil if the file comes from another system
	source *foreign.Source // nil unless it does
	tree   *Tree           // nil unless it is a folder
}

// rows opens an upload for reading. The caller has the rights with which it is written.
func (b *Board) rows(ctx context.Context, u *Upload, s *bulk.Survey) (*rowsOf, error) {
	files, err := b.files(ctx, u)
	if err != nil {
		return nil, err
	}
	f := files[0]
	if u.System != "" {
		source, err := b.open(ctx, u, files)
		if err != nil {
			return nil, err
		}
		// Only an administrator may say when records were made, and by whom.
		return &rowsOf{rows: source, all: bulk.All(source), explain: explainForeign(cmp.Or(u.Name, f.Name)), keep: auth.From(ctx).Admin, leftOut: new(foreign.Options).LeftOut(), source: source, tree: u.Tree}, nil
	}
	format, pool, err := b.format(ctx, u, s)
	if err != nil {
		return nil, err
	}
	text := bulk.NewReader(f)
	text.Lone = true
	parser, err := bulk.NewParser(b.o.Schemes, text, f.Name, format)
	if err != nil {
		return nil, err
	}
	rows := parser.Rows(text)
	return &rowsOf{rows: rows, all: bulk.All(rows), explain: f.ReadError, pool: pool, text: text}, nil
}

// open opens files of another system. Values that grant rights, and secrets, are left out: an
// administrator imports them with the command.
func (b *Board) open(ctx context.Context, u *Upload, files []*bulk.File) (*foreign.Source, error) {
	have := make(map[string]bool)
	found := make(map[stele.NamespaceKey]*stele.Namespace)
	for ns, err := range b.o.Registrar.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		have[ns.Prefix], found[ns.Key()] = true, ns
	}
	source, err := foreign.Open(files, foreign.Options{
		System: u.System, Prefix: u.Prefix, Format: foreign.Auto, Schemes: b.o.Schemes, Merges: u.Update, Memory: MaxUpload,
		Namespaces: u.Spaces && (u.Tree != nil || foreign.IsTree(u.System)), Root: u.Root, Work: treeWork,
		Budget: bulk.NewBudget(ctx, maxText),
		Has:    func(prefix string) bool { return have[prefix] }, Find: func(key stele.NamespaceKey) *stele.Namespace { return found[key] },
	})
	return source, err
}

func (r *rowsOf) close() error {
	if r.source == nil {
		return nil
	}
	return r.source.Close()
}

// notes returns what of a file of another system is not in its rows.
func (r *rowsOf) notes() (list []error) {
	if r.source == nil {
		return nil
	}
	report := r.source.Report()
	if n := report.Admins + report.Secrets; n > 0 {
		list = append(list, stele.Messagef("upload.rights-left-out", "{count} values that grant rights or are secrets are left out; an administrator can import them with 'stele import'", n))
	}
	for _, prefix := range report.Missing {
		list = append(list, stele.Messagef("upload.prefix-without-namespace", "the prefix {prefix} has no namespace here; make it on the page of namespaces", prefix))
	}
	for _, note := range report.Notes {
		if m, ok := errors.AsType[*stele.Message](note); ok && m.Code == "import.rules-stay" { // as the command does it; a job undoes rules
			continue
		}
		list = append(list, note)
	}
	return list
}

// hasRules reports whether the file may bring rules of namespaces. Those of other systems bring minters, which are for the command.
func (r *rowsOf) hasRules() bool { return r.source != nil && r.source.System().Tree != nil }

// textOf returns a row as it stands in the file.
func textOf(row *bulk.Row) []byte {
	if row.Text == nil && row.Later != nil {
		return row.Later()
	}
	return row.Text
}
