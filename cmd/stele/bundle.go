package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/transparency"
)

// bundleFlags are the flags of bundle.
type bundleFlags struct {
	file   string
	again  bool
	origin string
}

func (p *program) bundleCommand() *cobra.Command {
	var f bundleFlags
	cmd := &cobra.Command{
		Use:   "bundle [PREFIX...] -o FILE",
		Short: "Hand over names, with their history and proofs, in one file",
		Long: `Bundle writes all that the registry has under the prefixes, or all of it, to one archive:
records with every version, namespaces, public keys, statements of persistence, the
positions of minters, figures of use by month, and the proofs of the transparency log that all of it is what the
registry once said. Another registry can take over from it, and 'stele bundle check'
checks it without any registry. It is a tar file, and a bag as archives take it (BagIt,
RFC 8493), of plain text files with a README. It never has secrets.

The registry signs the bundle with the key of its log. If the log has no name and no key
yet, name it with --origin. The same state of the registry gives the same bytes, within a
month: a bundle has the figures of use of the months that are over.

A file whose name ends in .gz or .tgz is compressed. The file appears when it is
complete. If bundle is interrupted, give the same command again: it goes on, with the
state of the registry that it began with. --again begins anew.

With --server the server makes the bundle, and the command downloads and checks it. If the
connection breaks it goes on where it was.

Only an administrator may have all; owners may have what is theirs.`,
		Example: `  stele bundle -o registry.tar
  stele bundle ark:12345 urn:example -o ours.tgz
  stele bundle ark:12345 -o ours.tgz --server https://id.example.org
  stele bundle check ours.tgz --key names.example.org/.log+f3ed7f9b+AQ...
  stele bundle sign ours.tgz --key example.key`,
		Args: func(cmd *cobra.Command, _ []string) error {
			if f.file == "" {
				return usage.Errorf(cmd, "flag.bundle-file-missing", "say to which file, with -o FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			far, err := p.isRemote(cmd)
			if err != nil {
				return err
			}
			if far {
				o, err := p.bundleOptions(cmd, nil)
				if err != nil {
					return err
				}
				return p.withServer(cmd, func(ctx context.Context, r *remote.Registry) error { return p.bundleFrom(ctx, r, &f, args, o) })
			}
			if err := p.hasFolder(); err != nil {
				return err
			}
			return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error { return p.bundle(ctx, r, &f, args) })
		},
	}
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "write to this `file`")
	cmd.Flags().BoolVar(&f.again, "again", false, "begin anew, also if an earlier run was interrupted")
	cmd.Flags().StringVar(&f.origin, "origin", os.Getenv("STELE_LOG_ORIGIN"), "`name` of the log if it has none yet, a URL without its scheme, such as names.example.org/.log (environment: STELE_LOG_ORIGIN)")
	usage.NeverFiles(cmd)
	cmd.AddCommand(p.bundleCheckCommand(), p.bundleSignCommand(), p.bundleListCommand())
	return cmd
}

// bundle writes a bundle of the registry.
func (p *program) bundle(ctx context.Context, r *registry.Registry, f *bundleFlags, args []string) error {
	l := access.NewLocal(r, p.now, r.Place().String())
	keys := func(ctx context.Context) (*transparency.Keys, error) { return r.SetUpLog(ctx, f.origin) }
	j, err := l.BundleBelow(ctx, r, args, keys, p.now())
	if err != nil {
		return err
	}
	bar := p.newProgress("bundle", "records", 0, nil)
	j.Gzip, j.Progress = isGzip(f.file), bar.Add
	done, resumed, err := j.WriteFile(ctx, f.file, f.again)
	bar.End()
	switch {
	case ctx.Err() != nil:
		return refuse("bundle", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	case err != nil:
		return err
	case resumed:
		fmt.Fprintf(p.stderr, "stele: went on with the bundle that was interrupted, of change %s\n", grouped(int64(done.Head.Changes)))
	}
	done.Note(ctx, j.From)
	if p.json {
		return p.printObject(bundleWritten{f.file, done.Head, done.Counts, done.Bytes, hex.EncodeToString(done.Manifest[:])})
	}
	return p.say("%s has %s records in %s versions, up to change %s\n", printable(f.file), grouped(int64(done.Counts.Records)), grouped(int64(done.Counts.Versions)), grouped(int64(done.Head.Changes)))
}

// bundleWritten is what --json prints of a bundle.
type bundleWritten struct {
	File     string        `json:"file"`
	Head     bundle.Head   `json:"bundle"`
	Counts   bundle.Counts `json:"counts"`
	Bytes    int64         `json:"bytes"`
	Manifest string        `json:"manifest"`
}

func isGzip(file string) bool {
	return strings.HasSuffix(file, ".gz") || strings.HasSuffix(file, ".tgz")
}

func (p *program) bundleCheckCommand() *cobra.Command {
	var keys []string
	var note bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a bundle",
		Long: `Check reads a bundle from its beginning to its end and needs no registry: that all files
are there and have the digests of the manifests, that each line is well formed, that the
history of every record is whole, and that each version is the one that the log of the
registry has, up to the checkpoint that the registry signed. It prints what the bundle
has, or says which file of the bundle is wrong, and in which line or at which byte. With -
for FILE it reads standard input.

Give the public key of the log with --key, as the registry publishes it. Without it check
uses the key that is in the bundle: then the bundle is whole, but any registry may have
made it.

With --note check tells the registry, which made the bundle and is named by --data or
--server, that the bundle is whole: 'stele bundle ls' and the page Promises and heirs of
the desk show when the last bundle of a namespace was last checked.`,
		Example: `  stele bundle check ours.tgz --key names.example.org/.log+f3ed7f9b+AQ...
  stele bundle check ours.tgz --note --server https://id.example.org
  stele bundle check ours.tgz --key keys.txt --json`,
		Args: usage.OneArgument("the bundle"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := p.bundleOptions(cmd, keys)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			report, err := p.checkBundle(ctx, args[0], o)
			if err != nil || !note {
				return err
			}
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				return l.NoteChecked(ctx, hex.EncodeToString(report.Manifest[:]))
			})
		},
	}
	cmd.Flags().BoolVar(&note, "note", false, "note in the registry that the bundle is whole")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "public `key` of the log or of a witness, or a file with such keys; may be given more than once")
	return cmd
}

// bundleOptions are how a bundle is read.
func (p *program) bundleOptions(cmd *cobra.Command, keys []string) (o bundle.Options, err error) {
	if o.Schemes, err = p.schemes(cmd); err != nil {
		return o, err
	}
	for _, text := range keys {
		if _, err := os.Stat(text); err == nil {
			data, err := disk.ReadSome(text, 1<<20)
			if err != nil {
				return o, err
			}
			text = string(data)
		}
		list, err := bundle.KeysOf(text)
		if err != nil {
			return o, err
		}
		o.Keys = append(o.Keys, list...)
	}
	o.Now, o.Temp = p.now(), bundle.TempFile
	return o, nil
}

// checkBundle reads a bundle, and prints what it has.
func (p *program) checkBundle(ctx context.Context, name string, o bundle.Options) (*bundle.Report, error) {
	var in io.Reader = p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, disk.FileError(err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	bar := p.newProgress("check", "versions", 0, nil)
	o.Progress = bar.Add
	report, err := bundle.Read(ctx, in, o)
	bar.End()
	if err != nil {
		return nil, err
	}
	if p.json {
		return report, p.printObject(bundleReport(name, report))
	}
	return report, p.sayBundle(name, report)
}

// bundleChecked is what --json prints of a bundle that is whole.
type bundleChecked struct {
	File         string          `json:"file"`
	Head         bundle.Head     `json:"bundle"`
	Counts       bundle.Counts   `json:"counts"`
	Manifest     string          `json:"manifest"`
	Trusted      bool            `json:"trusted"`
	Signatures   []bundleSigned  `json:"signatures"`
	Witnesses    []bundleWitness `json:"witnesses"`
	OutsideCount uint64          `json:"aliasesOutside"`
	Outside      []string        `json:"outside"`
}

type bundleSigned struct {
	Namespace string    `json:"namespace"`
	Key       string    `json:"key"`
	Date      time.Time `json:"date"`
}

type bundleWitness struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

func bundleReport(name string, r *bundle.Report) bundleChecked {
	out := bundleChecked{
		File: name, Head: r.Head, Counts: r.Counts, Manifest: hex.EncodeToString(r.Manifest[:]), Trusted: r.Trusted,
		Signatures: []bundleSigned{}, Witnesses: []bundleWitness{}, OutsideCount: r.OutsideCount, Outside: []string{},
	}
	for _, s := range r.Signatures {
		out.Signatures = append(out.Signatures, bundleSigned{s.Namespace, s.Key, s.Date})
	}
	for _, c := range r.Cosignatures {
		out.Witnesses = append(out.Witnesses, bundleWitness{c.Witness, c.At})
	}
	for _, a := range r.Outside {
		out.Outside = append(out.Outside, a.Alias.String())
	}
	return out
}

// sayBundle prints what a bundle has.
func (p *program) sayBundle(name string, r *bundle.Report) error {
	of := "all names"
	if len(r.Head.Prefixes) > 0 {
		var list []string
		for _, prefix := range r.Head.Prefixes {
			list = append(list, prefix.Key().String())
		}
		of = strings.Join(list, ", ")
	}
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s  %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "%s is whole\n", printable(name))
	line("of", "%s", of)
	line("log", "%s, change %s of %s", r.Head.Origin, grouped(int64(r.Head.Changes)), wording.Moment(r.Head.At))
	line("records", "%s in %s versions", grouped(int64(r.Counts.Records)), grouped(int64(r.Counts.Versions)))
	line("namespaces", "%s", grouped(int64(r.Counts.Namespaces)))
	if r.Counts.Usage > 0 {
		line("usage", "%s sums of a name in a month, up to %s", grouped(int64(r.Counts.Usage)), r.Head.UsageUntil)
	}
	line("manifest", "SHA-256 %x", r.Manifest)
	for _, s := range r.Signatures {
		line("signed", "%s, on %s by %s", s.Namespace, wording.Moment(s.Date), s.Key)
	}
	for _, c := range r.Cosignatures {
		line("witness", "%s, on %s", c.Witness, wording.Moment(c.At))
	}
	if r.OutsideCount > 0 {
		line("aliases", "%s are not names that the bundle is of, such as %s of %s", grouped(int64(r.OutsideCount)), r.Outside[0].Alias, r.Outside[0].ID)
	}
	if !r.Trusted {
		line("note", "checked with the key in the bundle itself; give the registry's with --key")
	}
	return p.say("%s", b.String())
}

func (p *program) bundleSignCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "sign FILE --key FILE",
		Short: "Sign a bundle with the key of a namespace",
		Long: `Sign checks a bundle, and adds the signature of the namespace whose private key is given
('stele key new' makes one): its owner says that this is what is handed over. The private
key stays here. The digests of the bundle do not change, only the end of the file does.`,
		Example: `  stele bundle sign ours.tgz --key example.key`,
		Args: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usage.Errorf(cmd, "flag.signing-key-missing", "say with which private key, with --key FILE")
			}
			return usage.OneArgument("the bundle")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := p.privateKey(file)
			if err != nil {
				return err
			}
			o, err := p.bundleOptions(cmd, nil)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			made, err := bundle.Sign(ctx, args[0], key, o)
			if err != nil {
				return err
			}
			for _, s := range made {
				if p.json {
					err = p.printObject(bundleSigned{s.Namespace, s.Key, s.Date})
				} else {
					err = p.say("%s signed %s by %s\n", printable(s.Namespace), printable(args[0]), s.Key)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "key", "", "`file` with the private key (PEM)")
	// It fails only for a flag that the command does not have.
	_ = cmd.MarkFlagFilename("key")
	return cmd
}
