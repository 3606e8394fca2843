package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Beside returns a digest of what a bundle has that is not in the change feed: how far the minters are, the keys of the log, the hosts of PURLs,
// which bytes names stand for, and until which month figures of use are in it. A bundle is the same as an earlier one only if the feed has no new change and the digest is the same.
// It reads no record, so that it is cheap for a large registry.
func (j *Job) Beside(ctx context.Context) (string, error) {
	spaces, err := j.From.Current(ctx)
	if err != nil {
		return "", err
	}
	states, err := j.From.Minters(ctx, spaces)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	add := func(parts ...any) { _, _ = fmt.Fprintf(sum, "%q\n", parts) } // it never fails
	for _, s := range states {
		add("minter", s.Name, string(s.After))
	}
	for i, k := range j.Keys.Public() {
		own := &j.Keys.List[i]
		add("key", k.String(), own.Created.UTC().String(), own.Retired.UTC().String())
	}
	add("hosts", j.From.Hosts())
	fixed, err := j.From.Fixed(ctx)
	if err != nil {
		return "", err
	}
	for i := range fixed {
		d := &fixed[i]
		add("fixed", d.Name.Scheme(), d.ID, d.Absent, d.SHA256, d.Size, d.At.UTC().String())
	}
	if j.Usage != nil {
		add("usage", usageUntil(j.Now))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
