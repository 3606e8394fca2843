package document

import (
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
	"pgregory.net/rapid"
)

func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := recordtest.Few(recordtest.GoodRule).Draw(t, "rules")
		var lines []byte
		for i := range list {
			lines = append(AppendRule(lines, &list[i]), '\n')
		}
		for _, text := range [][]byte{AppendRules(nil, list), lines} {
			if len(text) == 0 {
				continue
			}
			back, err := DecodeRules(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if !(&stele.Namespace{Rules: list}).Equal(&stele.Namespace{Rules: back}) {
				t.Fatalf("%s is read as %+v", text, back)
			}
		}
	})
	for text, says := range map[string]string{
		``:                       "",
		`[{"patern":"x"}]`:       "patern",
		`[{"pattern":1}]`:        "[0].pattern",
		"{\"pattern\":\"x\"}\n{": "",
		`[` + strings.Repeat(`{},`, stele.MaxRules) + `{}]`: "200 are the most",
	} {
		if _, err := DecodeRules([]byte(text)); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %v, want %q", text, err, says)
		}
	}
	if got := AppendRules(nil, nil); !slices.Equal(got, []byte("[]")) {
		t.Errorf("%s", got)
	}
}
