// Package hdl reads and writes the messages of the Handle protocol, versions 2.0 to 2.11 (RFC 3652,
// and what its reference implementation does where the two differ), for servers and for clients:
// envelope, header, credential, the bodies of all operations, values and the types of values that the
// protocol itself defines, digests, answers to challenges, message authentication codes, signatures,
// session keys and ciphers, and the fragments of messages over UDP.
//
// It opens no sockets and no files, reads no clock and decides nothing: which answer a request gets is
// the server's work. Every reader is total: any octets give a value, or an [Error] that says what is
// wrong, where, and which response code fits. Sizes and counts are checked against the octets that are
// there, and against the limits of the protocol, before anything is allocated.
//
// Octet slices in what a reader returns share the memory of its input; a caller that keeps them for
// longer than the input copies them.
package hdl

// The limits of the protocol. The reference implementation has the same.
const (
	MaxMessage = 262_144 // octets after the envelope
	MaxString  = 1 << 20 // octets of a string; only in files, a message is shorter
	MaxHandle  = 2048    // octets of a handle
	MaxValues  = 2048    // values of a handle
)

// Version is a version of the protocol. The zero Version is none.
type Version struct{ Major, Minor uint8 }

// Latest returns the highest version that this package knows.
func Latest() Version { return Version{2, 11} }

// Before reports whether v is older than version 2.minor.
func (v Version) Before(minor uint8) bool {
	return v.Major < 2 || v.Major == 2 && v.Minor < minor
}

// less orders versions.
func (v Version) less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Operation is the operation code of a message.
type Operation uint32

// The operations (specification, section 4).
const (
	Resolve         Operation = 1
	GetSiteInfo     Operation = 2
	CreateHandle    Operation = 100
	DeleteHandle    Operation = 101
	AddValue        Operation = 102
	RemoveValue     Operation = 103
	ModifyValue     Operation = 104
	ListHandles     Operation = 105
	ListDerived     Operation = 106 // prefixes below a prefix; DO-IRP 3.0
	AnswerChallenge Operation = 200
	VerifyAnswer    Operation = 201
	HomePrefix      Operation = 300
	UnhomePrefix    Operation = 301
	ListPrefixes    Operation = 302
	SetUpSession    Operation = 400
	EndSession      Operation = 401
	ExchangeKey     Operation = 402 // the reference answers it with 5
	NextTransaction Operation = 1000
	GetTransactions Operation = 1001
	DumpHandles     Operation = 1002
	BackUp          Operation = 1003
)

// ResponseCode says how an operation ended. A request has the code 0.
type ResponseCode uint32

// The response codes (specification, section 4).
const (
	Success            ResponseCode = 1
	ServerError        ResponseCode = 2 // the client tries its next transport
	ServerBusy         ResponseCode = 3
	ProtocolError      ResponseCode = 4
	Unsupported        ResponseCode = 5
	RecursionLimit     ResponseCode = 6
	ServerBackup       ResponseCode = 7
	HandleNotFound     ResponseCode = 100
	HandleExists       ResponseCode = 101
	InvalidHandle      ResponseCode = 102
	ValuesNotFound     ResponseCode = 200
	ValueExists        ResponseCode = 201
	InvalidValue       ResponseCode = 202
	OldSite            ResponseCode = 300
	NotResponsible     ResponseCode = 301
	ServiceReferral    ResponseCode = 302
	PrefixReferral     ResponseCode = 303
	NotAdministrator   ResponseCode = 400
	NotPermitted       ResponseCode = 401
	Challenged         ResponseCode = 402
	NotAuthenticated   ResponseCode = 403
	InvalidCredential  ResponseCode = 404
	ChallengeTimeout   ResponseCode = 405
	CannotAuthenticate ResponseCode = 406
	SessionExpired     ResponseCode = 500
	SessionFailed      ResponseCode = 501
	InvalidSessionKey  ResponseCode = 502
	SetupNotSupported  ResponseCode = 503
	SetupRepeated      ResponseCode = 504
	Replayed           ResponseCode = 505
)

// In returns the code as a message of version v has it: clients before 2.5 do not know 7 and 202.
func (c ResponseCode) In(v Version) ResponseCode {
	if v.Before(5) {
		switch c {
		case ServerBackup:
			return PrefixReferral
		case InvalidValue:
			return ValueExists
		}
	}
	return c
}

// Flags are the flags of a message's header.
type Flags uint32

// The flags (specification, section 3).
const (
	Authoritative Flags = 0x80000000
	Certify       Flags = 0x40000000
	Encrypt       Flags = 0x20000000
	Recursive     Flags = 0x10000000
	CacheCertify  Flags = 0x08000000
	Continuous    Flags = 0x04000000 // more messages of this answer follow
	KeepAlive     Flags = 0x02000000
	PublicOnly    Flags = 0x01000000
	ReturnDigest  Flags = 0x00800000
	Overwrite     Flags = 0x00400000
	MintSuffix    Flags = 0x00200000
	DoNotRefer    Flags = 0x00100000
)
