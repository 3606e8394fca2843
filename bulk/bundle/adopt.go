package bundle

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/transparency"
)

const opAdopt = "adopt"

// What is committed together, as stores have it. A crash costs the work on one part.
const (
	adoptVersions = 100_000
	adoptBytes    = 26 << 20
)

// Adoption is what an heir does with a bundle: it checks all of it, and then takes over what is in it.
type Adoption struct {
	To      *registrar.Registrar
	Heir    string  // the name of its log; "" if that has none
	Options Options // how the bundle is read. Keys are those that the heir trusts; Visit is not called

	Owner  string // of the namespaces; see [registrar.AdoptOptions]
	Split  bool   // leave out aliases that belong to other namespaces, and do not refuse the bundle for them
	Label  string // the name of the file
	DryRun bool   // write nothing

	// Silence asks the giver once more whether it is silent, and returns for how long it was. If it is not nil, namespaces that the giver has not sealed are adopted by
	// the rule for silence.
	Silence func(ctx context.Context, giver string) (registrar.Silence, error)

	// Sealed asks the giver whether namespaces are still sealed for this registry by the seal that the bundle has, and returns an error if not, which ends the
	// adoption. It is called before anything is written, and again when all of the bundle is here for reading, before the namespaces are opened: from the first commit on
	// a server of this registry shows the adoption, so that either the giver sees it and does not cancel, or this registry sees that the seal was cancelled. It returns the
	// namespaces of which the giver says that it redirects requests for them to this registry already. Nil: the giver is not asked.
	Sealed func(ctx context.Context, giver string, spaces []registrar.AdoptedSpace) (forwarded []stele.NamespaceKey, err error)

	// Others asks the other heirs of namespaces that are adopted since the giver fell silent, and returns an error if one of them may have taken one over, which ends the
	// adoption. It is called when Sealed is: from the first commit on a server of this registry shows the adoption, so that of two heirs at least one sees the other. Nil: none is asked.
	Others func(ctx context.Context, giver string, spaces []registrar.AdoptedSpace) error

	// Outside is called with each alias that belongs to another namespace, before all is checked. It may be nil.
	Outside func(id, alias stele.ID) error

	// Checked is called when all is checked, before anything is written. An error ends the adoption.
	Checked func(*Inheritance) error

	versions int // that are committed together; 0: adoptVersions
}

// Inheritance is what a bundle brings, and what became of it.
type Inheritance struct {
	Report       *Report
	Spaces       []registrar.AdoptedSpace
	Outside      uint64 // aliases that belong to other namespaces
	Administered uint64 // records with handle values that give rights to identities of the Handle System
	Done         bool   // an earlier run adopted all of it
	Silence      *registrar.Silence
	registrar.Adopted
}

// Run adopts a bundle. It reads the bundle twice: it writes nothing before it has checked all of it. If it is interrupted it is
// called again, and goes on.
func (a *Adoption) Run(ctx context.Context, in io.ReadSeeker) (*Inheritance, error) {
	result := &Inheritance{}
	said, err := a.check(ctx, in, result)
	if err != nil {
		return nil, err
	}
	if result.Outside > 0 && !a.Split {
		first := "" // the caller was told all of them
		if len(result.Report.Outside) > 0 {
			first = result.Report.Outside[0].Alias.String()
		}
		return nil, refusef(stele.Conflict, "adopt.aliases-outside", "{count} aliases of records in the bundle belong to namespaces that are not in it, such as {alias}: two registries would answer for one name; let the giver hand these namespaces over, too, or give --split-aliases to leave the aliases out", result.Outside, first)
	}
	o := registrar.AdoptOptions{Owner: a.Owner, Split: a.Split}
	if a.Heir != "" {
		o.IsHeir = func(origin string) bool { return transparency.BaseOrigin(origin) == a.Heir }
	}
	if a.Silence != nil {
		silence, err := a.Silence(ctx, said.From)
		if err != nil {
			return nil, err
		}
		o.Silence, result.Silence = &silence, &silence
	}
	heir, err := a.To.Adopt(ctx, said, o)
	if err != nil {
		return nil, err
	}
	result.Spaces = heir.Spaces()
	if result.Done, err = heir.IsDone(ctx); err != nil {
		return nil, err
	}
	if a.Checked != nil {
		if err := a.Checked(result); err != nil {
			return nil, err
		}
	}
	if result.Done {
		return result, nil
	}
	sealed := func() error {
		if spaces := heir.ToOpen(true); a.Others != nil && len(spaces) > 0 {
			if err := a.Others(ctx, said.From, spaces); err != nil {
				return err
			}
		}
		spaces := heir.ToOpen(false)
		if a.Sealed == nil || len(spaces) == 0 {
			return nil
		}
		forwarded, err := a.Sealed(ctx, said.From, spaces)
		heir.Forwarded(forwarded...)
		return err
	}
	if err := sealed(); err != nil || a.DryRun {
		return result, err
	}
	if err := heir.Begin(ctx); err != nil {
		return nil, err
	}
	if err := a.records(ctx, in, heir, result.Report); err != nil {
		return nil, err
	}
	if err := heir.FixData(ctx); err != nil {
		return nil, err
	}
	if err := sealed(); err != nil {
		return nil, err
	}
	result.Adopted, err = heir.Finish(ctx)
	return result, err
}

func refusef(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: opAdopt, Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// check reads all of the bundle, and returns what it says besides its records.
func (a *Adoption) check(ctx context.Context, in io.ReadSeeker, result *Inheritance) (*registrar.AdoptedBundle, error) {
	said := &registrar.AdoptedBundle{Label: a.Label}
	var names *registrar.AdoptedNames
	shoulders, err := a.To.Shoulders(ctx)
	if err != nil {
		return nil, err
	}
	o := a.Options
	o.Visit = Visitor{
		Head: func(h *Head) error {
			said.From = transparency.BaseOrigin(h.Origin)
			for _, k := range a.Options.Keys {
				if !k.Cosign && k.Name == said.From {
					said.Keys = append(said.Keys, k.String())
				}
			}
			if said.Keys == nil {
				return refusef(stele.Invalid, "adopt.key-missing", "the bundle is one of {giver}, and this registry does not know the key of its log; ask the giver for it by another way than the bundle came, and give it with --key", said.From)
			}
			return nil
		},
		Namespace: func(v *NamespaceVersion) error {
			if v.Current && v.Namespace.Prefix != "" {
				said.Spaces = append(said.Spaces, v.Namespace)
			}
			return nil
		},
		Minter: func(m *Minter) error {
			said.Minters = append(said.Minters, stele.MinterState{Name: m.Name, After: slices.Clone(m.State)})
			return nil
		},
		Fixed: func(f *Fixed) error {
			id, err := a.Options.Schemes.Parse(f.Name)
			said.Fixed = append(said.Fixed, registrar.FixedName{Name: id, FixedData: f.data()})
			return err
		},
		Record: func(v *RecordVersion) (err error) {
			if names == nil {
				if names, err = registrar.NamesOf(a.Options.Schemes, said.Spaces, shoulders...); err != nil {
					return err
				}
			}
			return a.judge(names, v, said, result)
		},
	}
	if result.Report, err = a.read(ctx, in, o); err != nil {
		return nil, err
	}
	said.Generation = result.Report.Head.Generation
	for _, e := range result.Report.Eras {
		if e.Generation != said.Generation {
			said.Earlier = append(said.Earlier, e.Generation)
		}
	}
	said.Bundle, said.Change, said.Until = hex.EncodeToString(result.Report.Manifest[:]), result.Report.Head.Changes, result.Report.Head.At
	return said, nil
}

// read reads the bundle from its beginning.
func (a *Adoption) read(ctx context.Context, in io.ReadSeeker, o Options) (*Report, error) {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, refusef(stele.Invalid, "adopt.not-a-file", "the bundle is read twice, so that it has to be a file: {cause}", err)
	}
	return Read(ctx, in, o)
}

// judge judges a version of a record, and counts the names of the last one.
func (a *Adoption) judge(names *registrar.AdoptedNames, v *RecordVersion, said *registrar.AdoptedBundle, result *Inheritance) error {
	if err := names.Check(v.Record); err != nil {
		return err
	}
	if !v.Current {
		return nil
	}
	if said.Names++; names.GrantsRights(v.Record) {
		result.Administered++
	}
	for _, alias := range v.Record.Aliases {
		if names.Has(alias) {
			said.Names++
			continue
		}
		result.Outside++
		if a.Outside != nil {
			if err := a.Outside(v.Record.ID, alias); err != nil {
				return err
			}
		}
	}
	return nil
}

// records reads the bundle again, and writes its records while it goes on reading.
func (a *Adoption) records(ctx context.Context, in io.ReadSeeker, heir *registrar.Adopting, report *Report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts, done := make(chan []*stele.Record), make(chan struct{})
	go func() {
		defer close(done)
		for part := range parts {
			if ctx.Err() != nil {
				continue
			}
			if err := heir.Write(ctx, part); err != nil {
				cancel(err)
			}
		}
	}()
	err := a.send(ctx, in, report, parts)
	close(parts)
	<-done
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// send reads the records of the bundle, and sends them in parts.
func (a *Adoption) send(ctx context.Context, in io.ReadSeeker, report *Report, parts chan<- []*stele.Record) error {
	var part []*stele.Record
	size := 0
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		select {
		case parts <- part:
		case <-ctx.Done():
			return ctx.Err()
		}
		part, size = nil, 0
		return nil
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err := readAgain(ctx, in, a.Options.Schemes, report, func(list []*stele.Record) error {
		for _, rec := range list {
			part = append(part, rec)
			if size += rec.StoredSize(); len(part) >= cmp.Or(a.versions, adoptVersions) || size >= adoptBytes {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		if a.Options.Progress != nil {
			a.Options.Progress(len(list))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

var errReplaced = refusef(stele.Conflict, "adopt.file-replaced", "the file was changed while it was read; give the command again")

// KeysOf reads public keys of logs, one a line; what begins with # is left out.
func KeysOf(text string) (list []transparency.PublicKey, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, err := transparency.ParsePublicKey(line)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}
