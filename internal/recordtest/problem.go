package recordtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// CheckProblem fails unless err has want in its first problem, or is nil if there
// should be none.
func CheckProblem(t testing.TB, name string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	problems, ok := errors.AsType[stele.Problems](err)
	if !ok || !errors.Is(err, stele.Invalid) || !strings.Contains(problems[0].Error(), want) {
		t.Errorf("%s: %v\nwant %s", name, err, want)
	}
}
