# SPDX-License-Identifier: Apache-2.0
"""Models of mindcv 0.3.0 and their trainable parameters with num_classes=10, as MindSpore counts them."""

MODELS = {
    "resnet18": 11_181_642,
    "mobilenet_v2_100": 2_236_682,
    "mobilenet_v3_small_100": 1_528_106,
    "squeezenet1_1": 727_626,
    "densenet121": 6_964_106,
    "googlenet": 5_976_522,
    "vgg11": 128_804_554,
    "shufflenet_v1_g3_10": 914_328,
    "mnasnet_050": 950_322,
    "regnet_x_200mf": 2_319_482,
    "efficientnet_b0": 4_020_358,
    "convnext_tiny": 27_827_818,
    "swin_tiny": 27_527_044,
    "vit_b_32_224": 87_462_922,
}
