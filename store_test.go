package delayed_test

// past and later are due times that have been over, or lie ahead, for as long as anybody will run these tests.
const past = 1_000

const later = 4_000_000_000_001

// round is a due time that some servers write as 4e+12.
const round = 4_000_000_000_000
