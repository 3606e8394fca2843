package main

import (
	"context"
	"crypto"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/proof"
)

// statementFlags are the flags of sign.
type statementFlags struct {
	key       string
	media     string
	date      string
	replace   bool
	ifVersion uint64
}

func (p *program) signCommand() *cobra.Command {
	var f statementFlags
	cmd := &cobra.Command{
		Use:   "sign ID FILE --key FILE",
		Short: "Sign what an identifier stands for",
		Long: `Sign reads FILE, which is what the identifier stands for, and registers its size and
SHA-256, signed with a private key of the identifier's namespace or of one above it
('stele key new' makes one). FILE and the private key stay here: sign sends only the
signature to the registry. With - for FILE it reads standard input.

Readers who get the file from any source can then check that it is what was signed
('stele get --verify'). A signature is for one identifier and does not depend on the
location of the file: it stays valid when targets change.

A record has up to 16 signatures: of several files, such as the same text in two media
types, or by several keys. --replace replaces all signatures of the same media type; the
history keeps the earlier ones.`,
		Example: `  stele sign urn:paradisec:ab1:001:a song.wav --key paradisec.key --type audio/wav
  curl -s https://example.org/report.pdf | stele sign ark:12345/x5report - --key ark.key --type application/pdf --replace`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.sign-incomplete", "give the identifier and the file with what it stands for, as in: ark:12345/x5report report.pdf")
			}
			if f.key == "" {
				return usage.Errorf(cmd, "flag.signing-key-missing", "say with which private key, with --key FILE")
			}
			if f.key == "-" && args[1] == "-" {
				return usage.Errorf(cmd, "argument.standard-input-twice", "standard input can't be both the key and what is signed; put one into a file")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.sign(cmd, &f, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "`file` with the private key (PEM)")
	flags.StringVar(&f.media, "type", "", "media `type` of the file, such as audio/wav")
	flags.StringVar(&f.date, "date", "", "`time` of the signature (default now)")
	flags.BoolVar(&f.replace, "replace", false, "replace all signatures of the same media type")
	ifVersionFlag(cmd, &f.ifVersion)
	// It fails only for a flag that the command does not have.
	_ = cmd.MarkFlagFilename("key")
	return usage.NeverFiles(cmd)
}

// sign reads all before it opens the registry: a large file takes long, and other processes
// would wait.
func (p *program) sign(cmd *cobra.Command, f *statementFlags, name, file string) error {
	schemes, err := p.schemes(cmd)
	if err != nil {
		return err
	}
	server, err := p.serverOf(cmd)
	if err != nil {
		return err
	}
	id, err := p.parseName(cmd, schemes, server, name)
	if err != nil {
		return err
	}
	key, err := p.privateKey(f.key)
	if err != nil {
		return err
	}
	s := stele.Signature{Type: f.media, Date: p.now()}
	if f.date != "" {
		if s.Date, err = usage.ParseMoment(f.date); err != nil {
			return usage.Errorf(cmd, "", "--date: {cause}", err)
		}
	}
	s.Date = s.Date.UTC().Truncate(time.Second)
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.digest(ctx, file, &s); err != nil {
		return err
	}
	return p.reading(cmd, func(ctx context.Context, l *Registry) error {
		return p.keepSignature(ctx, l, f, id, key, s)
	})
}

// keepSignature signs, and registers the signature. It signs the record's own identifier,
// even if the user named it by an alias.
func (p *program) keepSignature(ctx context.Context, l *Registry, f *statementFlags, id stele.ID, key crypto.Signer, s stele.Signature) error {
	var made stele.Signature
	rec, err := l.Update(ctx, id, f.ifVersion, func(rec *stele.Record) error {
		var before bool
		var err error
		if made, before, err = proof.AddSignature(rec, key, s, f.replace); before {
			fmt.Fprintf(p.stderr, "stele: this key signed the same on %s already; --replace signs it again\n", wording.Moment(made.Date))
		}
		return err
	})
	if err != nil {
		return l.Meant(ctx, id, err)
	}
	if p.json {
		return p.printName(p.stdout, rec)
	}
	return p.say("%s signed on %s by %s: %d bytes, SHA-256 %x\n", printable(rec.ID.String()), wording.Moment(made.Date), made.Key, made.Size, made.SHA256)
}

// privateKey reads a private key, and warns if other users can read it.
func (p *program) privateKey(name string) (crypto.Signer, error) {
	text, err := p.readSmall(name)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(name); name != "-" && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(p.stderr, "stele: others on this machine can read the private key; close it to them: chmod 600 %s\n", printable(name))
	}
	return proof.ParsePrivate(text)
}

// digest reads what is signed, and notes size and digest.
func (p *program) digest(ctx context.Context, name string, s *stele.Signature) error {
	var from io.Reader = p.stdin
	total := int64(0)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if info.IsDir() {
			return refuse("sign", stele.Invalid, "sign.file-is-folder", "{file} is a folder; sign a file, such as an archive of it", printable(name))
		}
		from, total = file, info.Size()
	}
	var done int64
	progress := p.newProgress("digest", "bytes", total, func() int64 { return done })
	defer progress.End()
	err := proof.Digest(ctx, from, s, func(n int) {
		done += int64(n)
		progress.Add(n)
	})
	if ctx.Err() != nil {
		return refuse("sign", stele.Unavailable, "sign.interrupted", "it was interrupted; nothing was signed")
	}
	return err
}
