package handles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/wire/hdl"
)

// Bounds of the keys of a site.
const (
	maxSiteKeys   = 1000            // that are remembered: those of as many rolls
	replacePeriod = 5 * time.Minute // for the records of all prefixes, after a roll
)

// noteKeys remembers the public keys that a site has or had. A record of a prefix may have an older one than the cell
// does: a restore brings records back and leaves the cell as it is, and a roll may break off.
func noteKeys(kept *registrar.HandleSite) {
	add := func(key []byte) {
		if digest := digestOf(key); !slices.Contains(kept.Keys, digest) {
			kept.Keys = append(kept.Keys, digest)
		}
	}
	if former, err := hdl.ParseKeyFile(kept.Former, nil); err == nil {
		public := former.Public()
		add(public.Append(nil))
	}
	if site, err := hdl.ParseSite(kept.Octets); err == nil {
		for i := range site.Servers {
			add(site.Servers[i].Key)
		}
	}
	kept.Keys = kept.Keys[max(len(kept.Keys)-maxSiteKeys, 0):]
}

func digestOf(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// isOwnSite reports whether a value is a site all of whose servers have a key that is or was ours; own are their digests.
func isOwnSite(v *stele.HandleValue, own []string) bool {
	if !strings.EqualFold(v.Type, typeSite) {
		return false
	}
	site, err := hdl.ParseSite(v.Data)
	return err == nil && len(site.Servers) > 0 && !slices.ContainsFunc(site.Servers, func(s hdl.Server) bool { return !slices.Contains(own, digestOf(s.Key)) })
}

// replaceKeys replaces the key of our sites in the records of all prefixes, those of mirrors too. The key of the site is
// replaced already, so a client that goes away does not end this.
func (s *Service) replaceKeys(ctx context.Context, own []string, next []byte, serial uint16) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replacePeriod)
	defer cancel()
	for name, err := range s.homed(ctx) {
		if err != nil {
			return err
		}
		id, err := s.Parse(name)
		if err != nil {
			return err
		}
		_, err = s.o.Registrar.Update(ctx, id, 0, func(rec *stele.Record) error {
			for i := range rec.Values {
				v := &rec.Values[i]
				if !isOwnSite(v, own) {
					continue
				}
				site, err := hdl.ParseSite(v.Data)
				if err != nil {
					return err
				}
				site.Serial = serial
				for k := range site.Servers {
					site.Servers[k].Key = next
				}
				v.Data, v.Timestamp = site.Append(nil), s.value(0, "", nil).Timestamp
			}
			return nil
		})
		if kind := stele.KindOf(err); err != nil && kind != stele.NotFound && kind != stele.Gone {
			return err
		}
	}
	return nil
}
