package hdlclient

import (
	"context"

	"github.com/stele-id/stele/wire/hdl"
)

// VerifyAnswer asks the server that has an identity whether an answer to a challenge of the caller's proves it: the server knows
// the secret, and the caller does not. Certified says the same as that of an [Answer].
func (c *Client) VerifyAnswer(ctx context.Context, q hdl.VerifyRequest) (right, certified bool, err error) {
	handle := q.Identity.Handle
	if err := checkHandle(handle); err != nil {
		return false, false, err
	}
	w := c.newWalk(nil)
	got, err := w.run(ctx, handle, false, func(ctx context.Context, s *server) (*reply, error) {
		return c.ask(ctx, w, s, &request{operation: hdl.VerifyAnswer, handle: handle, body: &q})
	})
	if err != nil {
		return false, false, err
	}
	if got.code() != hdl.Success {
		return false, false, got.failure()
	}
	body, ok := got.body.(hdl.VerifiedBody)
	if !ok {
		return false, false, got.odd()
	}
	return body.Valid, got.certified && !w.unproven, nil
}
