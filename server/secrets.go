package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
)

// readySecrets prepares the secrets of the registry when a server begins: it makes the
// first key if the options allow that, encrypts what an older program wrote in clear, and says
// which keys are missing. Names are answered whatever it finds.
func (s *server) readySecrets(ctx context.Context, r *registry.Registry) {
	ctx = auth.With(ctx, auth.Local())
	log := s.log
	err := s.encryptSecrets(ctx, r)
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

// encryptSecrets makes the first key, and encrypts the secrets that are in clear.
func (s *server) encryptSecrets(ctx context.Context, r *registry.Registry) error {
	if s.o.MakeSecretKey {
		if err := r.Registrar.ReadySecrets(ctx); err != nil {
			return err
		}
	}
	done, err := r.Registrar.EncryptSecrets(ctx, zonekey.SealCell)
	if done.Clear == 0 {
		if registrar.IsKeyless(err) {
			return nil // SecretKeys reports the secrets that are in clear
		}
		return err
	}
	s.log.Warn("private keys that an older version stored in clear are encrypted now; backups from before still have them in clear", "secrets", done.Clear, "key", done.Key)
	return errors.Join(err, r.Compact(ctx))
}

// warnWide warns of a data folder that other users may read or write.
func (s *server) warnWide() {
	if s.o.Place.IsDatabase() {
		return
	}
	info, err := os.Stat(s.o.Place.Folder)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return // an earlier check has reported whether it is there
	}
	s.log.Warn("other users of this machine may reach the folder of the registry, which has restricted records; run: chmod 700 "+s.o.Place.Folder, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
}
