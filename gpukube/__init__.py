"""gpukube: GPU node pools on EKS, AKS and GKE from one declarative spec."""

__all__ = ["__version__"]

__version__ = "0.1.0"
