package main

import (
	"context"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

const (
	// requestLife is how long the answer to a request is kept that may come again.
	requestLife = 24 * time.Hour

	// requestsAtOnce is how many are forgotten before others get a chance to write.
	requestsAtOnce = 10_000
)

// forgetRequests forgets requests that are a day old, now and every hour, until the
// context ends.
func (s *server) forgetRequests(ctx context.Context, r *registrar.Registrar) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		for {
			n, err := r.ForgetRequests(ctx, s.now().Add(-requestLife), requestsAtOnce)
			if err != nil && ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
				s.log.Warn("old requests can't be forgotten", "error", err.Error())
			}
			if n < requestsAtOnce {
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
