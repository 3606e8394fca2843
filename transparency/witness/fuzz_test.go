package witness

import (
	"testing"

	"github.com/stele-id/stele/transparency"
)

// A request that is read is the one that a collector writes.
func FuzzParseRequest(f *testing.F) {
	const hash = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw="
	const note = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u2014 example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
	f.Add([]byte("old 20852014\n" + hash + "\n\n" + note))
	f.Add([]byte("old 0\n\n" + note))
	f.Add([]byte("old 00\n\n" + note))
	f.Add([]byte("old 1\n" + hash + "x\n\n" + note))
	f.Add([]byte("old 18446744073709551616\n\n" + note))
	f.Add([]byte("old 1\n\n\n" + note))
	f.Add([]byte("\n\n\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := parseRequest(body)
		if err != nil {
			return
		}
		if again := addCheckpoint(q.old, q.proof, string(q.note)); again != string(body) {
			t.Errorf("%q is written as %q", body, again)
		}
		if _, err := transparency.ParseCheckpoint(string(q.note)); err != nil {
			t.Errorf("%q has a checkpoint that is not one: %v", body, err)
		}
	})
}
