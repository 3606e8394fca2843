package hdl

// AdminPermissions are the rights that an HS_ADMIN value grants. Bits without a name are kept.
type AdminPermissions uint16

// The rights (specification, section 5; the last is of DO-IRP 3.0).
const (
	MayAddHandle     AdminPermissions = 0x0001
	MayDeleteHandle  AdminPermissions = 0x0002
	MayAddDerived    AdminPermissions = 0x0004
	MayDeleteDerived AdminPermissions = 0x0008
	MayModifyValue   AdminPermissions = 0x0010
	MayRemoveValue   AdminPermissions = 0x0020
	MayAddValue      AdminPermissions = 0x0040
	MayModifyAdmin   AdminPermissions = 0x0080
	MayRemoveAdmin   AdminPermissions = 0x0100
	MayAddAdmin      AdminPermissions = 0x0200
	MayRead          AdminPermissions = 0x0400
	MayList          AdminPermissions = 0x0800
	MayListDerived   AdminPermissions = 0x1000
)

// permissionDigits is how many rights have a digit in the text forms. The others have none.
const permissionDigits = 12

// String returns the 12 digits of the JSON form: the right most is MayAddHandle.
func (p AdminPermissions) String() string {
	var b [permissionDigits]byte
	for i := range b {
		b[permissionDigits-1-i] = '0' + byte(p>>i&1)
	}
	return string(b[:])
}

// Batch returns the 12 digits as batch files have them: the left most is MayAddHandle.
func (p AdminPermissions) Batch() string {
	var b [permissionDigits]byte
	for i := range b {
		b[i] = '0' + byte(p>>i&1)
	}
	return string(b[:])
}

// ParsePermissions reads the digits of the JSON form.
func ParsePermissions(text string) (AdminPermissions, error) {
	return parsePermissions(text, func(i int) int { return len(text) - 1 - i })
}

// ParseBatchPermissions reads the digits of the form of batch files.
func ParseBatchPermissions(text string) (AdminPermissions, error) {
	return parsePermissions(text, func(i int) int { return i })
}

// parsePermissions reads 1 to 16 digits; place says which bit the digit at i is.
func parsePermissions(text string, place func(i int) int) (AdminPermissions, error) {
	if text == "" || len(text) > 16 {
		return 0, errorf(InvalidValue, "hdl.permissions-length", "the permissions {text} have {digits} digits; 12 are expected", quoted(text), len(text))
	}
	var p AdminPermissions
	for i := range len(text) {
		switch text[i] {
		case '1':
			p |= 1 << place(i)
		case '0':
		default:
			return 0, errorf(InvalidValue, "hdl.permissions-digit", "the permissions {text} have a character that is not 0 or 1 at place {at}", quoted(text), i+1)
		}
	}
	return p, nil
}

// quoted cuts a text that is shown in an error.
func quoted(text string) string {
	const most = 40
	if len(text) > most {
		text = text[:most] + "..."
	}
	return `"` + text + `"`
}

// Admin is the data of an HS_ADMIN value.
type Admin struct {
	Permissions AdminPermissions
	Identity    Reference
	Legacy      bool // two zero octets follow, as 7.x writes them
}

// ParseAdmin reads the data of an HS_ADMIN value.
func ParseAdmin(b []byte) (Admin, error) {
	r := newReader("HS_ADMIN", InvalidValue, b)
	a := Admin{Permissions: AdminPermissions(r.u16("permissions")), Identity: r.reference()}
	a.Legacy = r.zeroTail() != nil
	if err := r.end(); err != nil {
		return Admin{}, err
	}
	return a, nil
}

// Append appends the data.
func (a *Admin) Append(dst []byte) []byte {
	dst = a.Identity.append(appendU16(dst, uint16(a.Permissions)))
	if a.Legacy {
		dst = append(dst, 0, 0)
	}
	return dst
}

// ParseReferences reads the data of an HS_VLIST value.
func ParseReferences(b []byte) ([]Reference, error) {
	r := newReader("HS_VLIST", InvalidValue, b)
	refs := r.references(nil, "references", maxCount)
	if err := r.end(); err != nil {
		return nil, err
	}
	return refs, nil
}

// AppendReferences appends the data of an HS_VLIST value.
func AppendReferences(dst []byte, refs []Reference) []byte { return appendReferences(dst, refs) }
