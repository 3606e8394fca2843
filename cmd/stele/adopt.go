package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/giver"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
)

// adoptFlags are the flags of adopt.
type adoptFlags struct {
	keys   []string
	owner  string
	origin string
	split  bool
	dryRun bool
	yes    bool
	silent bool
	sure   bool
	zones  bool
	at     string
	giver  giverFlags
}

func (p *program) adoptCommand() *cobra.Command {
	var f adoptFlags
	cmd := &cobra.Command{
		Use:   "adopt FILE",
		Short: "Take over the names of a bundle of another registry",
		Long: `Adopt takes over what another registry, the giver, handed over in a bundle (see 'stele
bundle'): namespaces, names, aliases, every version of every record with its date and its
author, withdrawn and reserved names, and how far the minters are. It checks all of the
bundle before it writes anything. docs/adopting.md describes what is taken over.

Give the public key of the giver's log with --key, as the giver publishes it. Adopt keeps
the key, so that later bundles of the same giver need none.

If the giver has sealed a namespace for this registry, names of it are minted and changed
here from then on; confirm that with --yes. Otherwise it is adopted for reading only: its
names are resolved here. A later bundle, made after the seal, adds what is new, and opens
the namespace.

The giver may have cancelled its seal since it made the bundle. So adopt asks it, before it
begins and before it opens the namespace: at the address that --giver names, at that of
'stele escrow watch', or else at the host in the name of its log. It refuses if the giver says
that the namespace is not sealed for this registry, or was sealed again. If the giver can't be
asked, its operator has to tell you that the seal holds: give --i-know then.

Users of the giver have no rights here: the namespaces belong to --owner, or to
administrators alone. Adopt refuses a bundle if records have aliases in namespaces that are
not in it. With --split-aliases it leaves these aliases out, and writes them to
FILE.aliases.

With --silent a namespace that the giver has not sealed is adopted since the giver fell silent
(see docs/escrow.md): if it names this registry as an heir, and 'stele escrow watch' has counted as
many silent days as it asks for. Adopt asks the giver once more, and the other heirs that the bundle
names: if one of them has taken the namespace over it refuses. If one of them can't be asked, give --i-know
when its operator has told you that it has not taken it over and will not. Records are then changed here;
new names are made in new namespaces below it only, until 'stele escrow ended'. Confirm with --yes.

With --publish namespaces that are minted or changed here from now on are also published in the zone
in which the giver publishes them, as 'stele zone add' does. Name servers and keys are not taken over:
add yours with 'stele zone add'. A namespace that is published here already stays as it is.

If adopt is interrupted or killed, give the same command again: it goes on, and nothing
is minted before all is taken over.`,
		Example: `  stele adopt theirs.tar --key names.example.org/.log+f3ed7f9b+AQ... --dry-run
  stele adopt theirs.tar --key giver.txt --owner ana --yes
  stele adopt theirs.tar --key giver.txt --silent --dry-run`,
		Args: usage.OneArgument("the bundle"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := p.bundleOptions(cmd, f.keys)
			if err != nil {
				return err
			}
			in, err := os.Open(args[0])
			if err != nil {
				return disk.FileError(err)
			}
			defer func() { _ = in.Close() }()
			p.create = !f.dryRun
			if f.dryRun {
				if err := p.hasFolder(); err != nil {
					return err
				}
			}
			rule, err := allowedRule(cmd, f.giver.allow)
			if err != nil {
				return err
			}
			watcher, err := f.giver.watcher(p, cmd, nil)
			if err != nil {
				return err
			}
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
				watcher.Watches = r.Registrar
				return p.adopt(ctx, r, &f, args[0], in, o, rule, watcher)
			})
		},
	}
	onFolder(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.keys, "key", nil, "public `key` of the giver's log or of a witness, or a file with such keys; may be given more than once")
	flags.StringVar(&f.owner, "owner", "", "`user` who owns the namespaces here (default: administrators alone)")
	flags.StringVar(&f.origin, "origin", os.Getenv("STELE_LOG_ORIGIN"), "`name` of this registry's log if it has none yet, which the giver names as the heir (environment: STELE_LOG_ORIGIN)")
	flags.BoolVar(&f.split, "split-aliases", false, "leave out aliases in namespaces that are not in the bundle, and list them in FILE.aliases")
	flags.BoolVar(&f.dryRun, "dry-run", false, "check all, print what would be taken over, and write nothing")
	flags.BoolVar(&f.silent, "silent", false, "adopt since the giver fell silent, if it has agreed to that: records are changed here, and names are not made")
	f.giver.add(cmd)
	flags.StringVar(&f.at, "giver", "", "`URL` at which the giver is asked whether its seal holds, such as https://names.example.org (default: the host in the name of its log)")
	flags.BoolVar(&f.sure, "i-know", false, "adopt though the giver, or with --silent another heir, can't be asked: its operator has told you that the namespace is still sealed for this registry, or is not taken over there")
	flags.BoolVar(&f.zones, "publish", false, "publish namespaces that open here in the zones in which the giver publishes them")
	flags.BoolVar(&f.yes, "yes", false, "confirm that names are minted and changed here from now on")
	_ = cmd.RegisterFlagCompletionFunc("owner", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("origin", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("giver", cobra.NoFileCompletions)
	return cmd
}

// adopt takes over a bundle.
func (p *program) adopt(ctx context.Context, r *registry.Registry, f *adoptFlags, name string, in io.ReadSeeker, o bundle.Options, rule outbound.Rule, watcher *giver.Watcher) error {
	if o.Keys == nil {
		kept, err := r.Registrar.GiverKeys(ctx)
		if err != nil {
			return err
		}
		if o.Keys, err = bundle.KeysOf(strings.Join(kept, "\n")); err != nil {
			return err
		}
	}
	own, err := p.heirName(ctx, r, f)
	if err != nil {
		return err
	}
	list := aliasList{name: name + ".aliases", keep: f.split && !f.dryRun, shown: p.stderr}
	check := p.newProgress("check", "versions", 0, nil)
	bar := check
	o.Progress = func(n int) { bar.Add(n) }
	var logged func(context.Context) error
	job := &bundle.Adoption{
		To: r.Registrar, Heir: own, Options: o, Owner: f.owner, Split: f.split, Label: filepath.Base(name), DryRun: f.dryRun, Outside: list.add,
		Checked: func(i *bundle.Inheritance) error {
			check.End()
			if err := list.close(); err != nil {
				return err
			}
			if f.dryRun || i.Done {
				return nil
			}
			if !f.yes {
				for _, s := range i.Spaces {
					if s.Silent != "" {
						return refuse("adopt", stele.Invalid, "flag.adopt-silent-unconfirmed", "{giver} was silent on {days} days, so that the records of {namespace} are changed here from now on; if it comes back, the two can't be joined; give --yes if it is to be so, or look first with --dry-run", i.Report.Head.Origin, i.Silence.Days, s.Key)
					}
					if !s.Reading {
						return refuse("adopt", stele.Invalid, "flag.adopt-unconfirmed", "{giver} has sealed {namespace} for this registry, so that its names are minted and changed here from now on, and never there again; give --yes if it is to be so, or look first with --dry-run", i.Report.Head.Origin, s.Key)
					}
				}
			}
			logged = access.NewLocal(r, p.now, r.Place().String()).FollowLog(ctx)
			bar = p.newProgress("adopt", "versions", int64(i.Report.Counts.Versions), nil)
			return nil
		},
	}
	asker := &heir.Checker{HTTP: outbound.NewClient(rule, heir.Patience, heir.MaxAnswer), Agent: "Stele/" + about().Version}
	job.Sealed = (&giver.Seals{Watches: r.Registrar, Ask: asker.HandOvers, At: f.at, Sure: f.sure}).Confirm
	if f.silent {
		job.Silence, job.Others = watcher.ConfirmSilence, (&giver.Others{Ask: watcher.AskHeir, Sure: f.sure}).Confirm
	}
	defer waitForGarbage(false)()
	done, err := job.Run(ctx, in)
	bar.End()
	err = errors.Join(err, list.close())
	if logged != nil {
		if late := logged(ctx); late != nil && ctx.Err() == nil && err == nil {
			fmt.Fprintf(p.stderr, "adopt: the transparency log did not follow: %v; 'stele serve' continues it\n", late)
		}
	}
	if err == nil && f.zones && !f.dryRun {
		err = p.publishAdopted(ctx, r, done)
	}
	switch {
	case ctx.Err() != nil:
		return refuse("adopt", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	case err != nil:
		return err
	case p.json:
		return p.printObject(adoptionReport(name, f.dryRun, done))
	}
	return p.sayAdoption(name, f.dryRun, f.zones, done, list.path())
}

// heirName returns the name of this registry, by which the giver names its heir; "" if it has none.
func (p *program) heirName(ctx context.Context, r *registry.Registry, f *adoptFlags) (string, error) {
	if f.origin != "" && !f.dryRun {
		keys, err := r.SetUpLog(ctx, f.origin)
		if err != nil {
			return "", err
		}
		return keys.Origin, nil
	}
	keys, err := r.LogPublicKeys(ctx)
	if err != nil || keys == nil {
		return f.origin, err
	}
	return keys.Origin, nil
}

// aliasList writes down the aliases that are left out, or shows the first of them.
type aliasList struct {
	name  string
	keep  bool
	shown io.Writer

	file  *os.File
	out   *bufio.Writer
	count int
}

// maxShownAliases is how many aliases are shown that a bundle is refused for.
const maxShownAliases = 20

func (l *aliasList) add(id, alias stele.ID) (err error) {
	l.count++
	switch {
	case !l.keep && l.count <= maxShownAliases:
		fmt.Fprintf(l.shown, "adopt: %s, an alias of %s, belongs to a namespace that is not in the bundle\n", printable(alias.String()), printable(id.String()))
	case !l.keep && l.count == maxShownAliases+1:
		fmt.Fprintln(l.shown, "adopt: and others")
	}
	if !l.keep {
		return nil
	}
	if l.file == nil {
		if l.file, err = os.Create(l.name); err != nil {
			return disk.FileError(err)
		}
		l.out = bufio.NewWriter(l.file)
	}
	if _, err = fmt.Fprintf(l.out, "%s\t%s\n", alias, id); err != nil {
		return disk.FileError(err)
	}
	return nil
}

func (l *aliasList) close() error {
	if l.out == nil {
		return nil
	}
	err := errors.Join(l.out.Flush(), l.file.Sync(), l.file.Close())
	if l.out = nil; err != nil {
		return disk.FileError(err)
	}
	return nil
}

// path returns the name of the file if one was written.
func (l *aliasList) path() string {
	if l.file == nil {
		return ""
	}
	return l.name
}

// adopted is what --json prints of an adoption.
type adopted struct {
	File       string         `json:"file"`
	From       string         `json:"from"`
	Change     uint64         `json:"change"`
	Manifest   string         `json:"manifest"`
	DryRun     bool           `json:"dryRun,omitempty"`
	Done       bool           `json:"alreadyDone,omitempty"`
	Namespaces []adoptedSpace `json:"namespaces"`
	Records    uint64         `json:"records"`
	Versions   uint64         `json:"versions"`
	Import     uint64         `json:"import,omitempty"`
	Written    int            `json:"written"`
	Present    int            `json:"present"`
	Outside    uint64         `json:"aliasesOutside"`
	Left       []string       `json:"redactedHere,omitempty"`
	Shut       []string       `json:"shut,omitempty"`
}

type adoptedSpace struct {
	Namespace string `json:"namespace"`
	Reading   bool   `json:"readingOnly"`
	Silent    bool   `json:"silent,omitempty"`
	Heir      string `json:"heir,omitempty"`
}

func adoptionReport(name string, dryRun bool, i *bundle.Inheritance) adopted {
	out := adopted{
		File: name, From: i.Report.Head.Origin, Change: i.Report.Head.Changes, Manifest: fmt.Sprintf("%x", i.Report.Manifest), DryRun: dryRun, Done: i.Done,
		Namespaces: []adoptedSpace{}, Records: i.Report.Counts.Records, Versions: i.Report.Counts.Versions,
		Import: i.Import, Written: i.Written, Present: i.Present, Outside: i.Outside,
	}
	for _, s := range i.Spaces {
		out.Namespaces = append(out.Namespaces, adoptedSpace{s.Key.String(), s.Reading, s.Silent != "", s.HandOver.Heir})
	}
	for _, id := range i.Left {
		out.Left = append(out.Left, id.String())
	}
	for _, key := range i.Shut {
		out.Shut = append(out.Shut, key.String())
	}
	return out
}

// sayAdoption prints what became of a bundle, and what is to be done next.
func (p *program) sayAdoption(name string, dryRun, published bool, i *bundle.Inheritance, aliases string) error {
	var b strings.Builder
	h := &i.Report.Head
	switch {
	case i.Done:
		fmt.Fprintf(&b, "%s was taken over before\n", printable(name))
	case dryRun:
		fmt.Fprintf(&b, "%s can be taken over; nothing was written\n", printable(name))
	default:
		fmt.Fprintf(&b, "%s is taken over, as import %d: %s versions written, %s were here\n", printable(name), i.Import, grouped(int64(i.Written)), grouped(int64(i.Present)))
	}
	fmt.Fprintf(&b, "  from          %s, change %s of %s\n", printable(h.Origin), grouped(int64(h.Changes)), wording.Moment(h.At))
	fmt.Fprintf(&b, "  records       %s in %s versions\n", grouped(int64(i.Report.Counts.Records)), grouped(int64(i.Report.Counts.Versions)))
	for _, s := range i.Spaces {
		fmt.Fprintf(&b, "  namespace     %s, %s\n", printable(s.Key.String()), printable(fate(&s)))
	}
	if i.Outside > 0 {
		fmt.Fprintf(&b, "  aliases       %s left out%s\n", grouped(int64(i.Outside)), into(aliases))
	}
	if i.Administered > 0 {
		fmt.Fprintf(&b, "  note          %s records have HS_ADMIN values; identities of the Handle System that they name may change them here\n", grouped(int64(i.Administered)))
	}
	if lost := lostChanges(i); lost > 0 {
		fmt.Fprintf(&b, "  note          the giver's log had %s entries more when it was seen last: what they say is not in this bundle; look for a later one\n", grouped(int64(lost)))
	}
	for _, id := range i.Left {
		fmt.Fprintf(&b, "  left          %s, which was redacted here\n", printable(id.String()))
	}
	if i.Erased > 0 {
		fmt.Fprintf(&b, "  erased        the content of %s records that the giver has redacted; 'stele store compact' removes it from the files\n", grouped(int64(i.Erased)))
	}
	if !dryRun && !i.Done {
		b.WriteString(nextSteps(i, published))
	}
	return p.say("%s", b.String())
}

func into(file string) string {
	if file == "" {
		return ""
	}
	return ", see " + printable(file)
}

// fate says what becomes of a namespace.
func fate(s *registrar.AdoptedSpace) string {
	switch {
	case s.Silent != "":
		return "changed here from now on, since the giver fell silent; new names are made in new namespaces below it"
	case !s.Reading:
		return "minted and changed here from now on"
	case s.HandOver.State == stele.Sealed || s.HandOver.State == stele.Forwarded:
		return "for reading only: it is sealed for another registry, " + s.HandOver.Heir
	case s.HandOver.State == stele.Offered:
		return "for reading only: it is offered to " + s.HandOver.Heir + ", and not sealed yet"
	}
	return "for reading only: the giver has not sealed it"
}

// nextSteps says what the operator does next.
func nextSteps(i *bundle.Inheritance, published bool) string {
	var b strings.Builder
	for _, key := range i.Shut {
		fmt.Fprintf(&b, "  stele ns skip %s +N   its minter is shut: this registry was restored from a backup, and may have made names of it before that it does not know; give an N that is greater than what it can have made\n", printable(key.String()))
	}
	for _, s := range i.Spaces {
		switch zone := s.Publication.Zone; {
		case zone == "":
		case published && mayPublish(&s):
			fmt.Fprintf(&b, "  stele zone add %s --ns NAME=ADDRESS   its zone %s is published here; name servers and keys are not taken over\n", printable(s.Key.String()), printable(zone))
		default:
			fmt.Fprintf(&b, "  stele zone add %s --zone ...   the giver publishes it in the zone %s; zones and their keys are not taken over\n", printable(s.Key.String()), printable(zone))
		}
		if !s.Reading && s.Silent == "" {
			fmt.Fprintf(&b, "  at the giver: stele handover forward %s   when this registry answers for the names\n", printable(s.Key.String()))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "next:\n" + b.String()
}

// lostChanges returns how many entries the log of a silent giver had more, when it was seen last, than its bundle has.
func lostChanges(i *bundle.Inheritance) uint64 {
	if s := i.Silence; s != nil && s.Size > i.Report.Head.Changes {
		return s.Size - i.Report.Head.Changes
	}
	return 0
}
