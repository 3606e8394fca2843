package digest

import (
	"context"
	"encoding/json"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/mail"
)

// Preview makes the letters that users would get if digests were due now, with all that happened since the last one. Only is a user, or empty
// for all. A user who has nothing new gets none. It writes nothing: the link that ends digests is not a working one.
func (s *Sender) Preview(ctx context.Context, only string) (list []*mail.Letter, err error) {
	ctx = auth.With(ctx, auth.Local())
	readers, err := s.o.Registrar.DigestReaders(ctx)
	if err != nil {
		return nil, err
	}
	periods, now := make(activities), s.o.Now()
	for _, to := range readers {
		if only != "" && to.User != only {
			continue
		}
		held, err := s.o.Registrar.WorkCell(ctx, toldCells+to.User)
		if err != nil {
			return nil, err
		}
		var last told
		if json.Unmarshal(held, &last) != nil { // the user was never told anything
			last = told{Rate: to.Rate}
		}
		from := now.Add(-max(mail.Period(to.Rate), mail.Period(last.Rate)))
		if from.Before(last.Through) {
			from = last.Through
		}
		r := s.reader(ctx, to, from, now, periods)
		m, err := s.make(ctx, r, last.Keys, false)
		if isGone(err) || err == nil && !m.fresh {
			continue
		} else if err != nil {
			return nil, err
		}
		l, err := s.write(to, r, m, "...")
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}
