package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/secret"
)

// How secret keys are given.
const (
	secretVariable   = "STELE_SECRET_KEY"      // the keys themselves
	credentialFolder = "CREDENTIALS_DIRECTORY" // of systemd, systemd.exec(5)
	credentialName   = "stele-secret-key"      // of the file there
	secretSuffix     = ".key"                  // behind the name of the data folder
)

// secretFlag adds the flag that names the file of secret keys.
func (p *program) secretFlag(root *cobra.Command) {
	root.PersistentFlags().StringVar(&p.secretFile, "secret-key-file", os.Getenv(config.Find("secret-key-file").Variable()), "`file` of the keys that encrypt secrets of the registry, such as private keys of zones (environment: STELE_SECRET_KEY_FILE)")
	// It fails only for a flag that the command does not have.
	_ = root.RegisterFlagCompletionFunc("secret-key-file", completeNames)
}

// settleSecrets decides where secret keys come from: the file that is named, the
// environment, systemd, or a file beside the data folder. It is called before the place of
// the registry changes, so that a copy of a registry is read with the keys of the original.
func (p *program) settleSecrets() { p.secrets = secret.NewRing(p.secretSource()) }

func (p *program) secretSource() secret.Source {
	random := rand.Reader
	if p.place().IsDatabase() {
		random = nil // the other servers of the database would not have a key that is made here
	}
	if p.secretFile != "" {
		return &secret.File{Path: p.secretFile, Random: random}
	}
	if text := os.Getenv(secretVariable); text != "" {
		return secret.Text{Keep: text, Name: "the environment variable " + secretVariable}
	}
	if folder := os.Getenv(credentialFolder); folder != "" {
		path := filepath.Join(folder, credentialName)
		if _, err := os.Stat(path); err == nil {
			return &secret.File{Path: path, Credential: true}
		}
	}
	if p.place().IsDatabase() {
		return secret.None{Hint: "this process, which was given no secret key (--secret-key-file)"}
	}
	return &secret.File{Path: defaultSecretFile(p.data), Optional: true, Random: random, OnMake: p.tellSecretMade}
}

// defaultSecretFile is where the key is by default: beside the data folder,
// so that no copy of the folder has it.
func defaultSecretFile(data string) string {
	if absolute, err := filepath.Abs(data); err == nil {
		data = absolute
	}
	return filepath.Clean(data) + secretSuffix
}

// tellSecretMade says that a key was made, and what to do with it.
func (p *program) tellSecretMade(k secret.Key, path string) {
	fmt.Fprintf(p.stderr, "stele: made the secret key %s in %s; it encrypts private keys in the registry, and backups do not have it: keep a copy of the file apart from them\n", k.ID(), printable(path))
}

// missingSecretKeys returns the keys that are not at hand, and how many secrets of the
// registry each encrypts.
func missingSecretKeys(ctx context.Context, r *registry.Registry) (map[string]int, error) {
	keys, err := r.Registrar.SecretKeys(ctx, zonekey.SealCell)
	missing := make(map[string]int)
	for _, k := range keys {
		if k.ID != "" && !k.Present && k.Secrets > 0 {
			missing[k.ID] = k.Secrets
		}
	}
	return missing, err
}
