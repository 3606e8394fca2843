package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/proof"
)

func (p *program) keyNewCommand() *cobra.Command {
	var f keyFlags
	var algorithm, file string
	cmd := &cobra.Command{
		Use:   "new PREFIX -o FILE",
		Short: "Make a key for a namespace",
		Long: `New makes a key. It writes the private key to FILE, which must not be there yet and
which only you may read, and adds the public key to the namespace. It prints the key's
name.

Keep FILE, and keep a copy where a fire does not reach both: nobody has it but you. It
is in PEM (PKCS #8), as OpenSSL has it too. Ed25519 is the best choice; ECDSA (P-256)
and RSA (3072 bits) are for readers that know no other.`,
		Example: `  stele key new urn:paradisec -o paradisec.key
  stele key new ark:12345 --algorithm ecdsa --expires 2030-12-31 -o ark.key`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := oneArgument("the prefix of a namespace")(cmd, args); err != nil {
				return err
			}
			if file == "" || file == "-" {
				return misuse(cmd, "say where the private key goes, with -o FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, k, err := newKey(algorithm, p.now())
			if err != nil {
				return err
			}
			if err := f.describe(&k); err != nil {
				return err
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				return p.keepNewKey(ctx, l, args[0], file, key, k)
			})
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&algorithm, "algorithm", "ed25519", "ed25519, ecdsa or rsa")
	flags.StringVarP(&file, "output", "o", "", "where the private key goes: a new `file`")
	choices(cmd, "algorithm", "ed25519", "ecdsa", "rsa")
	// It fails only for a flag that the command does not have.
	_ = cmd.MarkFlagFilename("output")
	return neverFiles(cmd)
}

// newKey makes a key. One whose name begins with a hyphen would be taken for a flag.
func newKey(algorithm string, created time.Time) (key crypto.Signer, k stele.SigningKey, err error) {
	for {
		if key, err = proof.Generate(algorithm, rand.Reader); err != nil {
			return nil, k, err
		}
		if k, err = proof.PublicKey(key, created); err != nil || !strings.HasPrefix(k.ID, "-") {
			return key, k, err
		}
	}
}

// keepNewKey writes the private key and then registers the public one: a registered key
// whose private part is lost would be useless. If it is surely not registered, keepNewKey
// removes the file again.
func (p *program) keepNewKey(ctx context.Context, l *Registry, prefix, file string, key crypto.Signer, k stele.SigningKey) error {
	at, err := l.ParsePrefix(prefix)
	if err != nil {
		return err
	}
	if _, err := l.Namespace(ctx, at); err != nil {
		return err
	}
	text, err := proof.MarshalPrivate(key)
	if err != nil {
		return err
	}
	if err := writeSecret(file, text); err != nil {
		return err
	}
	ns, err := l.AddKey(ctx, at, k)
	switch {
	case err == nil:
		return p.printKey(ns, k.ID)
	case isRefusal(err):
		return errors.Join(err, os.Remove(file))
	}
	return refuse("key new", stele.KindOf(err), "%w; whether the key %s is registered is not known: see 'stele key list %s'; its private part is in %s", err, k.ID, at, printable(file))
}

// isRefusal reports whether an error says that nothing was written.
func isRefusal(err error) bool {
	switch stele.KindOf(err) {
	case stele.Invalid, stele.NotFound, stele.Conflict, stele.Forbidden, stele.Unauthenticated:
		return true
	}
	return false
}

// writeSecret writes a new file that only its owner may read, down to the disk.
func writeSecret(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return refuse("key new", stele.Conflict, "%s is there already, and a private key can't be made again; choose another file", printable(name))
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
