package links

import (
	"testing"
	"time"
)

// A host that redirects to one that does not answer is not to blame: its other names are asked as before, and the name that leads
// nowhere becomes broken.
func TestRedirectedToDeadHost(t *testing.T) {
	r := rules(t)
	var h Host
	var s Status
	now := begin
	for range 12 {
		e := r.Judge(&Answer{URL: "https://a.example/x", Final: "https://dead.example/x", Hops: []Hop{{"https://a.example/x", 302}}, Failure: FailTimeout})
		s.Add(&e, Target{}, h.Answered, now)
		if h.Add(&e, now); h.Streak > 0 || h.IsOpen() || !h.Answered.Equal(now) {
			t.Fatalf("the first host counts as one that does not answer: %+v", h)
		}
		now = s.Next
	}
	if s.State != Broken {
		t.Errorf("it is %s", s.State)
	}
}

// robots.txt that could not be read today may be readable next week.
func TestRobotsUnreadComesAgain(t *testing.T) {
	var s Status
	e := rules(t).Judge(&Answer{Failure: FailRobotsUnread})
	if s.Add(&e, Target{}, time.Time{}, begin); s.State != Blocked || s.Next.Sub(begin) > 8*day {
		t.Errorf("%s, again after %s", s.State, s.Next.Sub(begin))
	}
}
