package links

import (
	"fmt"
	"testing"
	"time"
)

// TestOutageWaits: while this server reaches no host, what there is no room for in the line comes back after an hour, and not every few minutes
// for as long as that lasts. When a host answers, it is as before.
func TestOutageWaits(t *testing.T) {
	l := NewLine()
	refusal := func(host string, now time.Time) time.Duration {
		t.Helper()
		for i := range 1000 {
			if later, ok := l.Add(task(fmt.Sprint(host, i), host), now); !ok {
				return later.Sub(now)
			}
		}
		t.Fatal("the line takes all")
		return 0
	}
	if wait := refusal("full.example", begin); wait > 30*time.Minute {
		t.Errorf("there is no outage, and a task waits for %s", wait)
	}
	for i := range outageFails {
		host := fmt.Sprintf("h%d.example", i)
		asked := task(host, host)
		asked.Rank = Urgent
		add(t, l, asked)
	}
	for range outageFails {
		asked, _, ok := l.Next(begin)
		if !ok {
			t.Fatal("nothing is asked")
		}
		l.Done(&asked, Report{}, &Evidence{Weight: Bad, State: Unchecked, Cause: DNSFailed}, begin)
	}
	if l.Outage().IsZero() {
		t.Fatal("the outage is not noticed")
	}
	if wait := refusal("full.example", begin); wait < ownWait || wait > 2*ownWait {
		t.Errorf("in an outage a task waits for %s", wait)
	}
	now := begin.Add(outagePause)
	asked, _, ok := l.Next(now)
	if !ok {
		t.Fatal("no host is tried after a pause")
	}
	l.Done(&asked, Report{}, fine, now)
	if wait := refusal("other.example", now); wait > 30*time.Minute {
		t.Errorf("after the outage a task waits for %s", wait)
	}
}
