package registry

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registrar"
)

// Inspection has the functions that are called with what an inspection finds.
type Inspection struct {
	Problem  func(problem *stele.Message)
	Note     func(note *stele.Message) // of a name that today's rules refuse; nil for nothing
	Progress func(done float64)        // from 0 to 1; nil for nothing
}

// progressVerifier is a store that reports the progress of its Verify.
type progressVerifier interface {
	VerifyProgress(ctx context.Context, report func(problem *stele.Message), progress func(done float64)) error
}

// Inspect checks what the store keeps, and then what the registrar made of it, and the transparency log. The first counts for
// half of the progress, each of the others for a quarter.
func (r *Registry) Inspect(ctx context.Context, tell Inspection) error {
	wrong := 0
	report := func(problem *stele.Message) {
		wrong++
		tell.Problem(problem)
	}
	progress := tell.Progress
	if progress == nil {
		progress = func(float64) {}
	}
	var err error
	if s, ok := r.Store.(progressVerifier); ok {
		err = s.VerifyProgress(ctx, report, func(done float64) { progress(done / 2) })
	} else {
		err = r.Store.Verify(ctx, report)
	}
	if err != nil || wrong > 0 { // what can't be read can't be judged
		return err
	}
	changes, err := r.Store.LastChange(ctx)
	if err != nil {
		return err
	}
	records := uint64(0)
	err = r.Registrar.VerifyAll(ctx, registrar.Verification{Problem: tell.Problem, Note: tell.Note, Record: func() {
		// There are no more records than changes.
		if records++; records%1000 == 0 {
			progress(0.5 + float64(min(records, changes))/float64(changes)/4)
		}
	}})
	if err != nil {
		return err
	}
	return r.Log.VerifyProgress(ctx, tell.Problem, func(done float64) { progress(0.75 + done/4) })
}

// VerifyLog checks the transparency log against the registry. Only an administrator may, who has asked for the rest of the check.
func (r *Registry) VerifyLog(ctx context.Context, report func(problem *stele.Message)) error {
	return r.Log.Verify(ctx, report)
}

// MissingSecretKeys returns the secret keys that were not found, and how many secrets of the
// registry each encrypts.
func (r *Registry) MissingSecretKeys(ctx context.Context) (map[string]int, error) {
	keys, err := r.Registrar.SecretKeys(ctx, zonekey.SealCell)
	missing := make(map[string]int)
	for _, k := range keys {
		if k.ID != "" && !k.Present && k.Secrets > 0 {
			missing[k.ID] = k.Secrets
		}
	}
	return missing, err
}
