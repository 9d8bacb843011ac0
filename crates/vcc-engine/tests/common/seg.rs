use vcc_engine::{Segment, sys};

/// A segment under construction: `seg().ack(1).ece()`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seg(pub Segment);

/// An empty segment: no flags, no payload, window 0.
pub fn seg() -> Seg {
    Seg::default()
}

/// A SYN with the options of a Linux host on Ethernet.
pub fn linux_syn() -> Seg {
    seg().syn().win(64240).mss(1460).wscale(10).sack_permitted().timestamps()
}

macro_rules! flag_setters {
    ($($name:ident = $flag:ident),*) => { $(
        pub fn $name(mut self) -> Self {
            self.0.flags |= sys::$flag as u16;
            self
        }
    )* };
}

macro_rules! ip_ecn_setters {
    ($($name:ident = $value:ident),*) => { $(
        pub fn $name(mut self) -> Self {
            self.0.ip_ecn = sys::$value as u8;
            self
        }
    )* };
}

macro_rules! option_setters {
    ($($name:ident = $option:ident),*) => { $(
        pub fn $name(mut self) -> Self {
            self.0.options |= sys::$option as u16;
            self
        }
    )* };
}

impl Seg {
    flag_setters!(
        fin = TCP_FIN,
        syn = TCP_SYN,
        rst = TCP_RST,
        psh = TCP_PSH,
        ece = TCP_ECE,
        cwr = TCP_CWR,
        ae = TCP_AE
    );
    ip_ecn_setters!(ect0 = IP_ECN_ECT_0, ect1 = IP_ECN_ECT_1, ce = IP_ECN_CE);
    option_setters!(
        sack_permitted = OPT_SACK_PERMITTED,
        timestamps = OPT_TIMESTAMPS,
        sack = OPT_SACK,
        ours_bad = OPT_OURS_BAD
    );

    /// With timestamps (RFC 7323).
    pub fn stamped(mut self, tsval: u32, tsecr: u32) -> Self {
        (self.0.tsval, self.0.tsecr) = (tsval, tsecr);
        self.timestamps()
    }

    pub fn seq(mut self, seq: u32) -> Self {
        self.0.seq = seq;
        self
    }

    pub fn ack(mut self, ack: u32) -> Self {
        self.0.ack = ack;
        self.0.flags |= sys::TCP_ACK as u16;
        self
    }

    /// The window field, unscaled.
    pub fn win(mut self, field: u16) -> Self {
        self.0.window = field;
        self
    }

    pub fn len(mut self, payload_bytes: u32) -> Self {
        self.0.payload_bytes = payload_bytes;
        self
    }

    /// A GSO super-segment, cut into segments of `seg_bytes`.
    pub fn cut(mut self, seg_bytes: u32) -> Self {
        self.0.seg_bytes = seg_bytes;
        self
    }

    pub fn mss(mut self, mss_bytes: u16) -> Self {
        self.0.mss = mss_bytes;
        self.0.options |= sys::OPT_MSS as u16;
        self
    }

    pub fn wscale(mut self, wscale: u8) -> Self {
        self.0.wscale = wscale;
        self.0.options |= sys::OPT_WSCALE as u16;
        self
    }

    pub fn without(mut self, option: sys::vcc_option) -> Self {
        self.0.options &= !(option as u16);
        match option {
            sys::OPT_MSS => self.0.mss = 0,
            sys::OPT_WSCALE => self.0.wscale = 0,
            _ => {}
        }
        self
    }

    /// Sets the free option space of the header.
    pub fn room(mut self, bytes: u8) -> Self {
        self.0.option_room_bytes = bytes;
        self
    }

    fn hello(mut self, hello: sys::vcc_hello) -> Self {
        self.0.hello = hello as u8;
        self.0.options |= sys::OPT_HELLO as u16;
        self
    }

    pub fn offer(self) -> Self {
        self.hello(sys::HELLO_OFFER)
    }

    pub fn accept(self) -> Self {
        self.hello(sys::HELLO_ACCEPT)
    }

    fn report(mut self, option: sys::vcc_option, ect0_bytes: u32, ce_bytes: u32) -> Self {
        self.0.feedback = sys::vcc_feedback { ect0_bytes, ce_bytes };
        self.0.options |= option as u16;
        self
    }

    pub fn pack(self, ect0_bytes: u32, ce_bytes: u32) -> Self {
        self.report(sys::OPT_PACK, ect0_bytes, ce_bytes)
    }

    /// An AccECN option in another form than a PACK's, with its first two fields.
    pub fn accecn_option(self, first_bytes: u32, ce_bytes: u32) -> Self {
        self.report(sys::OPT_ACCECN | sys::OPT_ACCECN_CE, first_bytes, ce_bytes)
    }

    /// AE, CWR and ECE as the ACE field (RFC 9768, 3.2.2).
    pub fn ace(mut self, ace: u16) -> Self {
        self.0.flags = self.0.flags & !(7 << 6) | (ace & 7) << 6;
        self
    }

    pub fn fack(self, ect0_bytes: u32, ce_bytes: u32) -> Self {
        self.report(sys::OPT_FACK, ect0_bytes, ce_bytes)
    }

    /// The ECN-setup SYN of RFC 3168, 6.1.1.
    pub fn asking_ecn(self) -> Self {
        self.ece().cwr()
    }

    /// A request for AccECN (RFC 9768, 3.1.1).
    pub fn asking_accecn(self) -> Self {
        self.ae().ece().cwr()
    }

    pub fn at_us(mut self, now_us: u64) -> Self {
        self.0.now_us = now_us;
        self
    }
}
