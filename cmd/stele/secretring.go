package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registrar"
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

// readySecrets prepares the secrets of the registry when a server begins: it makes the
// first key if that is allowed, encrypts what an older program wrote in clear, and says
// which keys are missing. Names are answered whatever it finds.
func (p *program) readySecrets(ctx context.Context, r *registry.Registry, log *slog.Logger) {
	ctx = auth.With(ctx, auth.Local())
	err := p.encryptSecrets(ctx, r, log)
	if errors.Is(err, stele.ErrSealed) {
		return // it is meant to be read only
	}
	if err != nil {
		log.Error("secrets can't be encrypted; zones are not signed with new keys until they can", "error", err.Error())
	}
	keys, err := r.Registrar.SecretKeys(ctx, zonekey.SealCell)
	if err != nil {
		log.Error("secrets can't be read", "error", err.Error())
		return
	}
	for _, k := range keys {
		switch {
		case k.ID == "":
			log.Warn("private keys in the registry are not encrypted; give the server a secret key (docs/secrets.md)", "secrets", k.Secrets)
		case !k.Present && (k.Secrets > 0 || k.Current):
			log.Error("a secret key is missing, so zones whose private keys it encrypts are not signed; put it back from its copy, or make new keys of these zones (docs/secrets.md)", "key", k.ID, "secrets", k.Secrets, "looked in", r.Registrar.SecretsAt())
		}
	}
}

// encryptSecrets makes the first key, and encrypts what is in clear.
func (p *program) encryptSecrets(ctx context.Context, r *registry.Registry, log *slog.Logger) error {
	if !p.place().IsDatabase() || p.secretFile != "" {
		if err := r.Registrar.ReadySecrets(ctx); err != nil {
			return err
		}
	}
	done, err := r.Registrar.EncryptSecrets(ctx, zonekey.SealCell)
	if done.Clear == 0 {
		if registrar.IsKeyless(err) {
			return nil // SecretKeys tells what is in clear
		}
		return err
	}
	log.Warn("private keys that an older version stored in clear are encrypted now; backups from before still have them in clear", "secrets", done.Clear, "key", done.Key)
	return errors.Join(err, r.Compact(ctx))
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

// warnWide warns of a data folder that other users may read or write.
func (s *server) warnWide() {
	if s.place().IsDatabase() {
		return
	}
	info, err := os.Stat(s.data)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return // whether it is there was told before
	}
	s.log.Warn("other users of this machine may reach the folder of the registry, which has restricted records; run: chmod 700 "+s.data, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
}
