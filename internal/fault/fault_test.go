package fault

import (
	"regexp"
	"testing"

	"github.com/stele-id/stele"
)

func TestError(t *testing.T) {
	for want, do := range map[string]func(){
		`^verify: a fault in the program: lost, at fault_test\.go:\d+; please report it$`:                                      func() { panic("lost") },
		`^verify: a fault in the program: runtime error: index out of range \[1\].*, at fault_test\.go:\d+; please report it$`: func() { _ = []int{0}[len([]int{0})] },
	} {
		err := func() (err error) {
			defer func() { err = Error("verify", recover()) }()
			do()
			return nil
		}()
		if stele.KindOf(err) != stele.Internal || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%v, and not %s", err, want)
		}
	}
}
