package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/transparency"
)

// logOriginFlag adds the flag that names a log which has no name yet.
func logOriginFlag(cmd *cobra.Command, origin *string) {
	cmd.Flags().StringVar(origin, "origin", os.Getenv("STELE_LOG_ORIGIN"), "`name` of the log if it has none yet, a URL without its scheme, such as names.example.org/.log (environment: STELE_LOG_ORIGIN)")
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("origin", cobra.NoFileCompletions)
}

func (p *program) logProveCommand() *cobra.Command {
	var version uint64
	var at, output, origin string
	var full bool
	cmd := &cobra.Command{
		Use:   "prove ID",
		Short: "Prove what a name stood for",
		Long: `Prove prints a proof: a small text file that shows what a record said in a version, when
that version was committed, and that it is in the log of the registry. 'stele log check'
checks it with the public key of the log and without the registry, years later too.

The proof has the current version, or with --version another one, or with --at the one
that was current at a time. It has the document that the public may see. With --full it
has all of it, for users with a role in the namespace. If the content of the version is
withheld, the proof shows that the version was committed, and not what it said.

On a folder or a database prove brings the log up to date and signs it first, and makes
its key if there is none: then name the log with --origin. A server signs its log every
minute; prove waits for it.`,
		Example: `  stele log prove ark:12345/x1 -o x1.proof
  stele log prove ark:12345/x1 --at 2031-05-02
  stele log prove ark:12345/x1 --version 1 --full
  stele log prove ark:12345/x1 --server https://id.example.org`,
		Args: usage.OneArgument("the identifier"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var then time.Time
			if at != "" {
				var err error
				if then, err = usage.ParseMoment(at); err != nil {
					return usage.Errorf(cmd, "", "--at: {cause}", err)
				}
				if cmd.Flags().Changed("version") {
					return usage.Errorf(cmd, "flag.at-and-version", "--at and --version each choose a version; keep one")
				}
			}
			if cmd.Flags().Changed("version") && version == 0 {
				return usage.Errorf(cmd, "flag.version-zero", "versions are numbered from 1")
			}
			return p.writing(cmd, func(ctx context.Context, l *Registry) error {
				id, err := l.Parse(args[0])
				if err != nil {
					return err
				}
				if _, err := l.SetUpLog(ctx, origin); err != nil {
					return err
				}
				proof, err := l.Prove(ctx, id, version, then, full)
				if err != nil {
					return l.Meant(ctx, id, err)
				}
				return p.writeProof(proof, output)
			})
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&version, "version", 0, "prove this `version` of the record")
	flags.StringVar(&at, "at", "", "prove the version that was current at this `time` (2031-05-02, or 2031-05-02T10:00:00Z)")
	flags.BoolVar(&full, "full", false, "prove the whole document, with what the public does not see")
	flags.StringVarP(&output, "output", "o", "", "write to this `file` instead of standard output")
	logOriginFlag(cmd, &origin)
	_ = cmd.MarkFlagFilename("output")
	return usage.NeverFiles(cmd)
}

// writeProof prints a proof, or writes it to a file.
func (p *program) writeProof(proof *transparency.Proof, output string) error {
	text, err := proof.MarshalText()
	if err != nil {
		return err
	}
	if output != "" && output != "-" {
		if err := os.WriteFile(output, text, 0o644); err != nil {
			return disk.FileError(err)
		}
		return nil
	}
	if p.json {
		return p.printObject(map[string]string{"proof": string(text)})
	}
	_, err = p.stdout.Write(text)
	return err
}

func (p *program) logCheckCommand() *cobra.Command {
	var keys, witnesses []string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a proof offline",
		Long: `Check checks a proof that 'stele log prove' made, and prints what it proves: which name
led where in which version, and when that version was committed. It needs no registry
and no network, only the public key of the log, which 'stele log key' prints at the
registry. --key takes the key, or a file with keys, one a line. A key that was rolled
checks the proofs of its time.

With --witness, the key of a witness or a file with keys, the checkpoint must have the
co-signature of each witness that is named: then others than the registry have seen this
state of the log, at the time that is printed.

Dates in the document are the registry's own statement, and may have been imported. What
is proved is the time of the commit. With - for FILE check reads standard input. It exits
with 1 if the proof does not hold, and says why.`,
		Example: `  stele log check x1.proof --key log.pub
  stele log check x1.proof --key names.example.org/.log+f6ca885f+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop
  stele log check x1.proof --key log.pub --witness witnesses.pub --json`,
		Args:              usage.OneArgument("the file"),
		ValidArgsFunction: usage.Files,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(keys) == 0 {
				return usage.Errorf(cmd, "flag.log-key-missing", "give the public key of the log with --key; 'stele log key' prints it at the registry")
			}
			trusted, err := p.readLogKeys(cmd, "key", keys, false)
			if err != nil {
				return err
			}
			seen, err := p.readLogKeys(cmd, "witness", witnesses, true)
			if err != nil {
				return err
			}
			return p.checkProof(args[0], trusted, seen)
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "public `key` of the log, or a file with such keys; may be given more than once")
	cmd.Flags().StringArrayVar(&witnesses, "witness", nil, "public `key` of a witness that must have co-signed, or a file with such keys; may be given more than once")
	_ = cmd.MarkFlagFilename("key")
	_ = cmd.MarkFlagFilename("witness")
	return cmd
}

// readLogKeys reads public keys: each text is a key, or the name of a file with keys.
func (p *program) readLogKeys(cmd *cobra.Command, flag string, texts []string, witness bool) (list []transparency.PublicKey, err error) {
	for _, text := range texts {
		k, err := transparency.ParsePublicKey(text)
		if err == nil {
			list = append(list, k)
			continue
		}
		content, ferr := p.readUpTo(text, maxKeyFile)
		if errors.Is(ferr, os.ErrNotExist) {
			return nil, usage.Errorf(cmd, "", "--{flag}: {cause}", flag, stele.Reason(err))
		}
		if ferr != nil {
			return nil, ferr
		}
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			if k, err = transparency.ParsePublicKey(line); err != nil {
				return nil, err
			}
			list = append(list, k)
		}
	}
	for _, k := range list {
		if k.Cosign != witness {
			return nil, usage.Errorf(cmd, "flag.log-key-of-other-kind", "--{flag}: {key} is not a key of that kind; --key is for keys of logs, and --witness for those of witnesses", flag, k.String())
		}
	}
	return list, nil
}

// checkProof checks a proof, and prints what it proves.
func (p *program) checkProof(file string, keys, witnesses []transparency.PublicKey) error {
	text, err := p.readUpTo(file, maxProofFile)
	if err != nil {
		return err
	}
	var proof transparency.Proof
	if err := proof.UnmarshalText(text); err != nil {
		return err
	}
	shown, err := proof.Check(slices.Concat(keys, witnesses))
	if err != nil {
		return err
	}
	for _, w := range witnesses {
		if !slices.ContainsFunc(shown.Cosignatures, func(c transparency.Cosignature) bool { return c.Witness == w.Name }) {
			return refuse("check proof", stele.Invalid, "log.witness-did-not-cosign", "the witness {witness} has not co-signed the checkpoint of this proof; without --witness the proof is checked by the signature of the log alone", w.Name)
		}
	}
	d, err := proofShown(&proof, shown)
	if err != nil {
		return err
	}
	if p.json {
		return p.printObject(d)
	}
	return p.say("%s", d.text())
}

// provedDocument is what a proof shows, as it is printed.
type provedDocument struct {
	Name         string                   `json:"name"`
	Kind         string                   `json:"kind"`
	Version      uint64                   `json:"version"`
	Committed    time.Time                `json:"committed"`
	Shows        string                   `json:"shows"` // public, full or entry
	State        string                   `json:"state,omitempty"`
	Targets      []string                 `json:"targets,omitempty"`
	Document     json.RawMessage          `json:"document,omitempty"`
	Log          string                   `json:"log"`
	Leaf         uint64                   `json:"leaf"`
	Size         uint64                   `json:"size"`
	Cosignatures []apijson.LogCosignature `json:"cosignatures,omitempty"`
	Unchecked    []string                 `json:"unchecked,omitempty"` // witnesses whose keys were not given
}

// proofShown returns what a proof that was checked shows.
func proofShown(proof *transparency.Proof, shown *transparency.Proved) (*provedDocument, error) {
	d := &provedDocument{
		Name: shown.Name, Kind: string(shown.Leaf.Kind), Version: shown.Leaf.Version, Committed: shown.Time().UTC(), Shows: "entry", Document: shown.Document,
		Log: shown.Checkpoint.Origin, Leaf: proof.Index, Size: shown.Checkpoint.Size,
	}
	for _, c := range shown.Cosignatures {
		d.Cosignatures = append(d.Cosignatures, apijson.LogCosignature{Witness: c.Witness, At: c.At})
	}
	for _, c := range transparency.ReadCosignatures(proof.Note) {
		if !slices.ContainsFunc(shown.Cosignatures, func(known transparency.Cosignature) bool { return known.Witness == c.Witness }) {
			d.Unchecked = append(d.Unchecked, c.Witness)
		}
	}
	if shown.Document == nil {
		return d, nil
	}
	if d.Shows = "public"; shown.Full {
		d.Shows = "full"
	}
	var said struct {
		State   string `json:"state"`
		Targets []struct {
			URL string `json:"url"`
		} `json:"targets"`
	}
	if err := json.Unmarshal(shown.Document, &said); err != nil {
		return nil, refuse("check proof", stele.Invalid, "log.proof-other-document", "the document is not the one whose digest is in the log")
	}
	if d.State = said.State; d.State == "" && shown.Leaf.Kind == transparency.KindRecord {
		d.State = string(stele.Active) // the canonical form leaves it out
	}
	for _, t := range said.Targets {
		d.Targets = append(d.Targets, t.URL)
	}
	return d, nil
}

// text says in words what is proved.
func (d *provedDocument) text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	when := wording.Moment(d.Committed)
	switch {
	case d.Shows == "entry":
		line("proved", "on %s version %d of %s was committed; the proof does not show what it said", when, d.Version, d.Name)
	case d.State == string(stele.Active) && len(d.Targets) > 0:
		line("proved", "on %s %s led to %s", when, d.Name, d.Targets[0])
	case d.State == "":
		line("proved", "on %s version %d of %s was committed, and said what the document says", when, d.Version, d.Name)
	default:
		line("proved", "on %s %s was %s", when, d.Name, d.State)
	}
	line("name", "%s", d.Name)
	line("version", "%d", d.Version)
	line("committed", "%s", d.Committed.Format(time.RFC3339Nano))
	for _, url := range d.Targets {
		line("led to", "%s", url)
	}
	if d.Document != nil {
		line("document", "%s, %d bytes", d.Shows, len(d.Document))
	}
	line("log", "%s, leaf %d of %d", d.Log, d.Leaf, d.Size)
	for _, c := range d.Cosignatures {
		line("seen by", "%s at %s", c.Witness, c.At.Format(time.RFC3339))
	}
	for _, name := range d.Unchecked {
		line("not checked", "co-signature of %s; give its key with --witness", name)
	}
	return b.String()
}
