package webtest

import "testing"

func TestEnglish(t *testing.T) {
	for page, want := range map[string]int{
		`<html lang="pt-BR"><p>Há um problema.</p></html>`:                                                         0,
		`<html lang="pt-BR"><p>Há <b>the end</b></p></html>`:                                                       1,
		`<html lang="pt-BR"><p lang="en">the <b>end</b></p><p>of it</p></html>`:                                    1,
		`<html lang="pt-BR"><code>the <b>end</b></code><img alt="the end" title="of"/></html>`:                     2,
		`<html lang="pt-BR"><p>Maps of Pará e até papéis, se for assim; "the" não, 'stele zone to' sim</p></html>`: 0,
		`<html lang="pt-BR"><p>não fechado</html>`:                                                                 1,
		`<html lang="en"><p>the end</p></html>`:                                                                    0,
	} {
		if got := English(page, "Maps of Pará"); len(got) != want {
			t.Errorf("%s: %q", page, got)
		}
	}
}
