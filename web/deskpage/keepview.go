package deskpage

import (
	"time"

	"github.com/stele-id/stele"
)

// Keeping is what is promised for the names of a namespace, and what becomes of them when the registry ends.
type Keeping struct {
	Frame
	Key, Title, SpaceURL string
	Role                 stele.Role // of the user who looks
	MayChange            bool
	Version              uint64 // of the namespace

	Promises []string // in sentences
	States   []string // of hand-overs, in sentences

	Heirs     []HeirView
	HeirsOf   string // the namespace above that names them; "" if this one does
	HeirsURL  string // of the page about that
	Registry  Field  // of a new heir
	Address   Field
	Days      Field
	LeastDays int

	Log      *KeptLog // nil if the registry has no log
	Deposits *Deposits

	Taken     *TakenView // nil if no bundle was taken yet, or if the user may not know of it
	BundleURL string     // from which a bundle of the namespace is downloaded; "" if the user may not
}

// HeirView is a registry that may take over the names.
type HeirView struct {
	Registry, Address string
	Days              int
}

// KeptLog is how far the transparency log is.
type KeptLog struct {
	Origin    string // "" if it has no name yet
	URL       string
	Size      uint64
	Behind    uint64
	Signed    time.Time // when the last checkpoint was; zero: never
	Witnesses int       // that have seen it
}

// TakenView is the last bundle that a person took, and the last check of one.
type TakenView struct {
	Made          time.Time
	By            string
	Change        uint64 // the last one that it has
	Records       uint64
	Wider         bool      // it has other names, too
	Checked       time.Time // zero: never
	CheckedBy     string
	CheckedChange uint64
}

// Deposits are bundles that the server makes at intervals.
type Deposits struct {
	List []DepositView
}

// DepositView is a place where bundles go.
type DepositView struct {
	Name    string
	Made    time.Time // zero: never
	Change  uint64    // the last one that it has
	Checked time.Time // zero: never
	Trouble string    // why the last one failed; "" if it did not
}
