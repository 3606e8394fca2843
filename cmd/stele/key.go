package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/card"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/proof"
)

func (p *program) keyCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "key",
		Short: "Manage the keys with which a namespace signs",
		Long: `The holder of a key of a namespace signs what its names stand for (see 'stele sign').
Readers then check that they have what was signed ('stele get --verify').

The private key is in a file that you keep; the registry never sees it. The registry has
the public key, and publishes it in the namespace's zone (TXT records at _n2s) and over
HTTP (/.well-known/stele/jwks/). A key signs for its namespace and for all below it.

Keys are never removed. A retired key can't sign any more, and its earlier signatures
stay valid. A key is revoked when another party may have it: all its signatures are
invalid.`,
		Example: `  stele key new urn:paradisec -o paradisec.key
  stele key list urn:paradisec
  stele key retire urn:paradisec kPrK_qmx
  stele key revoke urn:paradisec kPrK_qmx`,
	}, p.keyNewCommand(), p.keyAddCommand(), p.keyListCommand(), p.keyRetireCommand(), p.keyRevokeCommand())
}

// keyFlags are the flags that describe a new key.
type keyFlags struct {
	note    string
	expires string
}

func (f *keyFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.note, "note", "", "note for people, such as who has the key")
	cmd.Flags().StringVar(&f.expires, "expires", "", "`date` or time at which the key stops signing")
}

// describe fills in what the flags say.
func (f *keyFlags) describe(k *stele.SigningKey) error {
	k.Note = f.note
	if f.expires == "" {
		return nil
	}
	at, err := usage.ParseMoment(f.expires)
	if err != nil {
		return refuse("key", stele.Invalid, "", "--expires: {cause}", err)
	}
	k.Expires = at.UTC().Truncate(time.Second)
	return nil
}

func (p *program) keyAddCommand() *cobra.Command {
	var f keyFlags
	cmd := &cobra.Command{
		Use:   "add PREFIX FILE",
		Short: "Add a public key that was made elsewhere",
		Long: `Add adds the public key in FILE (PEM) to a namespace, and prints the name of the key.
The key is Ed25519, ECDSA on P-256, or RSA with 2048 to 4096 bits. The private key stays
where it is. OpenSSL extracts the public key:

  openssl pkey -in private.pem -pubout -out public.pem

With - for FILE add reads standard input. 'stele key new' makes both keys.`,
		Example: `  stele key add urn:paradisec public.pem --note 'in the safe'
  openssl pkey -in private.pem -pubout | stele key add urn:paradisec -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf(cmd, "argument.key-add-incomplete", "give the prefix of a namespace and the file with the public key, as in: urn:paradisec public.pem")
			}
			return nil
		},
		ValidArgsFunction: p.completeKeys(1, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := p.readSmall(args[1])
			if err != nil {
				return err
			}
			k, err := proof.ParsePublic(text, p.now())
			if err != nil {
				return err
			}
			if err := f.describe(&k); err != nil {
				return err
			}
			return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
				ns, err := l.AddKey(ctx, key, k)
				if err != nil {
					return err
				}
				return p.printKey(ns, k.ID)
			})
		},
	}
	f.add(cmd)
	return usage.NeverFiles(cmd)
}

// maxKeyFile is the size of the largest file that can be a key.
const maxKeyFile = 64 << 10

// readSmall reads a file that is not larger than a key, or standard input.
func (p *program) readSmall(name string) ([]byte, error) {
	text, err := p.readUpTo(name, maxKeyFile)
	if errors.Is(err, errTooLarge) {
		return nil, refuse("key", stele.Invalid, "key-file.too-large", `"{file}" is too large to be a key`, name)
	}
	return text, err
}

// readUpTo reads a file that has at most so many bytes, or standard input if its name is -.
// The error of a larger one has errTooLarge in it.
func (p *program) readUpTo(name string, most int64) ([]byte, error) {
	var from io.Reader = p.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, &stele.Error{Op: "read", Kind: stele.Invalid, Err: errTooLarge}
	}
	return text, nil
}

var errTooLarge = stele.Messagef("file.too-large-to-read", "the file is larger than what it can be; is it another file?")

// printKey prints a key of a namespace: its name, or all of it for a program.
func (p *program) printKey(ns *stele.Namespace, id string) error {
	i := slices.IndexFunc(ns.Keys, func(k stele.SigningKey) bool { return k.ID == id })
	if i < 0 {
		return refuse("key", stele.Internal, "signing-key.not-taken", "{namespace} has not taken the key {key}", ns.Key(), id)
	}
	if p.json {
		return p.printLine(newSigningKeyDocument(ns, &ns.Keys[i], p.now()))
	}
	return p.say("%s\n", id)
}

// signingKeyDocument is a key as programs see it.
type signingKeyDocument struct {
	Namespace string    `json:"namespace"`
	ID        string    `json:"id"`
	Algorithm string    `json:"algorithm"`
	State     string    `json:"state"`
	Public    []byte    `json:"public"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires,omitzero"`
	Revoked   time.Time `json:"revoked,omitzero"`
	Note      string    `json:"note,omitempty"`
}

func newSigningKeyDocument(ns *stele.Namespace, k *stele.SigningKey, now time.Time) signingKeyDocument {
	state, _ := proof.KeyState(k, now)
	return signingKeyDocument{ns.Key().String(), k.ID, k.Algorithm, state, k.Public, k.Created, k.Expires, k.Revoked, k.Note}
}

func (p *program) keyListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [PREFIX]",
		Aliases: []string{"ls"},
		Short:   "List the keys of a namespace, or of all namespaces",
		Long: `List prints the keys of a namespace, or of all namespaces that you may see: the name of
the key, which is its thumbprint (RFC 7638), its algorithm, its state, and the time
since which it is in that state.

	signs     it may sign
	waiting   it may sign later, and not yet
	retired   it may not sign any more; its earlier signatures stay valid
	revoked   all its signatures are invalid`,
		Example: "  stele key list urn:paradisec\n  stele key list --json",
		Args:    usage.AtMostOne("the prefix of a namespace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				list, err := l.WithKeys(ctx, args...)
				if err != nil {
					return err
				}
				return p.printSigningKeys(list)
			})
		},
	}
	return usage.NeverFiles(cmd)
}

func (p *program) printSigningKeys(list []*stele.Namespace) error {
	out := bufio.NewWriter(p.stdout)
	n := 0
	for _, ns := range list {
		for i := range ns.Keys {
			k := &ns.Keys[i]
			if n++; p.json {
				if err := p.printLine(newSigningKeyDocument(ns, k, p.now())); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(out, "%s  %s%s\n", card.KeyLine(k, p.now()), printable(ns.Key().String()), noteOf(k))
		}
	}
	if n == 0 {
		fmt.Fprintln(p.stderr, "stele: there are no keys; 'stele key new' makes one")
	}
	return out.Flush()
}

func noteOf(k *stele.SigningKey) string {
	if k.Note == "" {
		return ""
	}
	return "  (" + printable(k.Note) + ")"
}

func (p *program) keyNewCommand() *cobra.Command {
	var f keyFlags
	var algorithm, file string
	cmd := &cobra.Command{
		Use:   "new PREFIX -o FILE",
		Short: "Make a key for a namespace",
		Long: `New makes a key. It writes the private key to FILE, which must not exist yet and which
only you may read, and adds the public key to the namespace. It prints the name of the
key.

Keep FILE, and keep a copy in another building: the registry does not have the private
key. FILE is in PEM (PKCS #8), which OpenSSL reads. Prefer Ed25519; ECDSA (P-256) and
RSA (3072 bits) are for readers that don't support it.`,
		Example: `  stele key new urn:paradisec -o paradisec.key
  stele key new ark:12345 --algorithm ecdsa --expires 2030-12-31 -o ark.key`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneArgument("the prefix of a namespace")(cmd, args); err != nil {
				return err
			}
			if file == "" || file == "-" {
				return usage.Errorf(cmd, "flag.key-output-missing", "say where the private key goes, with -o FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, k, err := proof.NewKey(algorithm, rand.Reader, p.now())
			if err != nil {
				return err
			}
			if err := f.describe(&k); err != nil {
				return err
			}
			return p.reading(cmd, func(ctx context.Context, l *Registry) error {
				ns, err := l.AddNewKey(ctx, args[0], file, key, k)
				if err != nil {
					return err
				}
				return p.printKey(ns, k.ID)
			})
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&algorithm, "algorithm", "ed25519", "algorithm of the key: ed25519, ecdsa or rsa")
	flags.StringVarP(&file, "output", "o", "", "new `file` for the private key")
	usage.Choices(cmd, "algorithm", "ed25519", "ecdsa", "rsa")
	// It fails only for a flag that the command does not have.
	_ = cmd.MarkFlagFilename("output")
	return usage.NeverFiles(cmd)
}

func (p *program) keyRetireCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "retire PREFIX KEY",
		Short: "Retire a key: it may not sign any more",
		Long: `Retire ends the use of a key, now or at a later time. Signatures that it made before
stay valid. A retired key can't be reactivated: signatures that it made in between would
become valid.

KEY is the name of the key, or a beginning of it that only one key has. If a name begins
with a hyphen, write -- before the prefix.`,
		Example: `  stele key retire urn:paradisec kPrK_qmx
  stele key retire urn:paradisec kPrK_qmx --at 2027-01-31`,
		Args:              keyArguments,
		ValidArgsFunction: p.completeKeys(2, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			when := p.now()
			if at != "" {
				var err error
				if when, err = usage.ParseMoment(at); err != nil {
					return usage.Errorf(cmd, "", "--at: {cause}", err)
				}
			}
			return p.changeKey(cmd, args, func(k *stele.SigningKey) {
				if ended := !k.Expires.IsZero() && !k.Expires.After(p.now()); ended && at == "" {
					return
				}
				k.Expires = when.UTC().Truncate(time.Second)
				if k.Expires.Before(k.Created) {
					k.Expires = k.Created
				}
			}, func(ns *stele.Namespace, k *stele.SigningKey) error {
				return p.say("%s is retired in %s from %s on\n", k.ID, ns.Key(), wording.Moment(k.Expires))
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "`date` or time of the retirement (default now)")
	return usage.NeverFiles(cmd)
}

func (p *program) keyRevokeCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "revoke PREFIX KEY",
		Short: "Revoke a key: all its signatures become invalid",
		Long: `Revoke declares that another party may have a key. From then on all signatures of the
key are invalid, including earlier ones, because an attacker could backdate a signature.
It can't be undone. Sign again, with another key, what should stay verifiable.

KEY is the name of the key, or a beginning of it that only one key has. If a name begins
with a hyphen, write -- before the prefix.`,
		Example:           "  stele key revoke urn:paradisec kPrK_qmx",
		Args:              keyArguments,
		ValidArgsFunction: p.completeKeys(2, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.changeKey(cmd, args, func(k *stele.SigningKey) {
				if now := p.now().UTC().Truncate(time.Second); k.Revoked.IsZero() || k.Revoked.After(now) {
					k.Revoked = now
				}
			}, func(ns *stele.Namespace, k *stele.SigningKey) error {
				return p.say("%s is revoked in %s from %s on\n", k.ID, ns.Key(), wording.Moment(k.Revoked))
			})
		},
	})
}

func keyArguments(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usage.Errorf(cmd, "argument.key-of-namespace-missing", "give the prefix of a namespace and the name of a key, as in: urn:paradisec kPrK_qmx")
	}
	return nil
}

// changeKey changes one key of a namespace.
func (p *program) changeKey(cmd *cobra.Command, args []string, change func(*stele.SigningKey), tell func(*stele.Namespace, *stele.SigningKey) error) error {
	return p.onPrefix(cmd, args[0], func(ctx context.Context, l *Registry, key stele.NamespaceKey) error {
		ns, at, err := l.ChangeKey(ctx, key, args[1], change)
		if err != nil {
			return err
		}
		if p.json {
			return p.printKey(ns, ns.Keys[at].ID)
		}
		return tell(ns, &ns.Keys[at])
	})
}

// completeKeys offers prefixes of namespaces that have keys, then their keys, and after
// that many arguments nothing, or files.
func (p *program) completeKeys(arguments int, then cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) >= arguments {
			return nil, then
		}
		// Without a registry that can be asked, nothing is offered.
		_ = p.reading(cmd, func(ctx context.Context, l *Registry) error {
			list, err := l.WithKeys(ctx, args...)
			if err != nil {
				return err
			}
			for _, ns := range list {
				if len(args) == 0 {
					names = append(names, ns.Key().String())
					continue
				}
				for _, k := range ns.Keys {
					names = append(names, k.ID+"\t"+k.Algorithm)
				}
			}
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
