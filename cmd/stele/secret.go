package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/internal/disk"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/server"
)

func (p *program) secretCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "secret",
		Short: "Manage the key that encrypts secrets of the registry",
		Long: `The registry stores the private keys of zones and the TSIG keys of secondaries encrypted
with a secret key. The secret key is outside the registry and its backups: in a file
(--secret-key-file), in the environment variable STELE_SECRET_KEY, in the systemd
credential stele-secret-key, or in a file beside the data folder, with .key appended to
its name, which the program makes when it needs one.

Each key has an identifier, which is not secret. Keep a copy of the file apart from the
backups: without it a restore brings back names and records, but not the keys of zones.`,
		Example: `  stele secret keygen /etc/stele/secret.key
  stele secret ls
  stele secret rotate`,
	}, onFolder(p.secretKeygenCommand()), p.secretLsCommand(), p.secretRotateCommand())
}

func (p *program) secretKeygenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a secret key, in a new or an existing file",
		Long: `Keygen makes a secret key, writes it to a file that only its owner can read, and prints
the identifier of the key. If the file has keys, keygen appends the new one, and the
registry uses it from the next 'stele secret rotate' on: add it on all servers of a
registry first. Keygen does not open the registry.`,
		Example:           "  stele secret keygen /etc/stele/secret.key",
		Args:              usage.OneArgument("the file"),
		ValidArgsFunction: usage.Files,
		RunE: func(_ *cobra.Command, args []string) error {
			made, err := (&secret.File{Path: args[0], Random: rand.Reader}).Make()
			if err != nil {
				return disk.FileError(err)
			}
			if p.json {
				return p.printObject(map[string]string{"key": made.ID(), "file": args[0]})
			}
			return p.say("%s\n", made.ID())
		},
	}
}

// secretKeeper manages the keys that encrypt secrets, here or at a server.
type secretKeeper interface {
	SecretKeys(ctx context.Context) (*apijson.SecretKeys, error)
	RotateSecrets(ctx context.Context, want apijson.SecretRotation) (*apijson.SecretRotated, error)
}

// withSecrets calls do with the secrets of the registry.
func (p *program) withSecrets(cmd *cobra.Command, do func(ctx context.Context, s secretKeeper) error) error {
	far, err := p.isRemote(cmd)
	if err != nil {
		return err
	}
	if far {
		return p.withServer(cmd, func(ctx context.Context, r *remote.Registry) error { return do(ctx, r) })
	}
	if err := p.hasFolder(); err != nil {
		return err
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		return do(ctx, server.NewKeys(r, p.now))
	})
}

func (p *program) secretLsCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:   "ls",
		Short: "List secret keys, and how many secrets each encrypts",
		Long: `Ls lists the secret keys that are available or that the registry needs: the identifier,
the number of secrets that the key encrypts, and whether it is the current key, which
encrypts new secrets, or missing. It does not show the keys themselves.`,
		Example: "  stele secret ls\n  stele secret ls --server https://id.example.org --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSecrets(cmd, func(ctx context.Context, s secretKeeper) error {
				keys, err := s.SecretKeys(ctx)
				if err != nil {
					return err
				}
				return p.printSecretKeys(keys)
			})
		},
	})
}

// secretKeyLine is a secret key in the output with --json.
type secretKeyLine struct {
	ID      string `json:"id"`
	Current bool   `json:"current"` // new secrets are encrypted under it
	Present bool   `json:"present"` // it is at hand
	Secrets int    `json:"secrets"` // that are encrypted under it
}

func (p *program) printSecretKeys(keys *apijson.SecretKeys) error {
	if p.json {
		for _, k := range keys.Keys {
			if err := p.printObject(secretKeyLine(k)); err != nil {
				return err
			}
		}
		if keys.Clear > 0 {
			return p.printObject(map[string]int{"clear": keys.Clear})
		}
		return nil
	}
	for _, k := range keys.Keys {
		state := "unused"
		switch {
		case !k.Present && (k.Current || k.Secrets > 0):
			state = "missing"
		case k.Current:
			state = "current"
		case k.Secrets > 0:
			state = "in use"
		}
		if _, err := fmt.Fprintf(p.stdout, "%s  %-7s  %d secrets\n", printable(k.ID), state, k.Secrets); err != nil {
			return err
		}
	}
	if keys.Clear > 0 {
		return p.say("%d secrets are not encrypted; 'stele secret rotate' encrypts them, and 'stele serve' when it starts\n", keys.Clear)
	}
	return nil
}

func (p *program) secretRotateCommand() *cobra.Command {
	var want apijson.SecretRotation
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Encrypt all secrets with another key",
		Long: `Rotate changes the secret key of the registry: it encrypts all secrets again, and the
registry uses the new key from then on. If it is interrupted, run it again.

Without --key it uses the last key of the file, if that is not in use yet, or else makes
a key and appends it to the file. If several servers share the registry, first add a key
to the file of each with 'stele secret keygen'; the servers read the file again when
they need the new key. A server that gets the key as a systemd credential must be
restarted.

The old key stays in the file, because earlier backups need it. Remove its line when
these backups are gone. If a key is lost, --lost continues without it: make the secrets
again that it encrypted, with 'stele zone sign --mode off --force' and 'stele zone
sign', and with 'stele zone tsig add'.`,
		Example: `  stele secret rotate
  stele secret keygen /etc/stele/secret.key && stele secret rotate --server https://id.example.org
  stele secret rotate --lost`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withSecrets(cmd, func(ctx context.Context, s secretKeeper) error {
				done, err := s.RotateSecrets(ctx, want)
				if err != nil {
					return err
				}
				return p.printRotated(done)
			})
		},
	}
	cmd.Flags().StringVar(&want.Key, "key", "", "`identifier` of the key to use")
	cmd.Flags().BoolVar(&want.Lost, "lost", false, "continue although a key that encrypts secrets is missing")
	_ = cmd.RegisterFlagCompletionFunc("key", p.completeSecretKeys)
	return usage.NeverFiles(cmd)
}

// completeSecretKeys lets shells complete the identifiers of keys that the process has.
func (p *program) completeSecretKeys(cmd *cobra.Command, _ []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	// Without a registry that can be asked, nothing is offered.
	_ = p.withSecrets(cmd, func(ctx context.Context, s secretKeeper) error {
		keys, err := s.SecretKeys(ctx)
		if err != nil {
			return err
		}
		for _, k := range keys.Keys {
			if k.Present && !k.Current {
				ids = append(ids, k.ID)
			}
		}
		return nil
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) printRotated(done *apijson.SecretRotated) error {
	if p.json {
		return p.printObject(done)
	}
	_, err := fmt.Fprintf(p.stdout, "%d secrets were encrypted under the key %s, which is in use now\n", done.Moved, printable(done.Key))
	for _, id := range slices.Sorted(maps.Keys(done.Lost)) {
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "%d secrets are still encrypted under the missing key %s; make them again\n", done.Lost[id], printable(id))
		}
	}
	return err
}

// secretFlag adds the flag that names the file of secret keys.
func (p *program) secretFlag(root *cobra.Command) {
	root.PersistentFlags().StringVar(&p.secretFile, "secret-key-file", os.Getenv(config.Find("secret-key-file").Variable()), "`file` of the keys that encrypt secrets of the registry, such as the private keys of zones (environment: STELE_SECRET_KEY_FILE)")
	// It fails only for a flag that the command does not have.
	_ = root.RegisterFlagCompletionFunc("secret-key-file", usage.Files)
}

// settleSecrets decides where secret keys come from: the file that is named, the
// environment, systemd, or a file beside the data folder. It is called before the place of
// the registry changes, so that a copy of a registry is read with the keys of the original.
func (p *program) settleSecrets() {
	o := secret.FindOptions{File: p.secretFile, Data: p.data, Shared: p.place().IsDatabase(), Random: rand.Reader, OnMake: p.tellSecretMade}
	p.secrets = secret.NewRing(secret.Find(os.Getenv, o))
}

// tellSecretMade says that a key was made, and what to do with it.
func (p *program) tellSecretMade(k secret.Key, path string) {
	fmt.Fprintf(p.stderr, "stele: made the secret key %s in %s; it encrypts private keys in the registry, and backups do not have it: keep a copy of the file apart from them\n", k.ID(), printable(path))
}
